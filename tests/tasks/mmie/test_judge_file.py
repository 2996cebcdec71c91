import json
import logging

import pytest

from lmms_eval.api.request import ResponseError
from lmms_eval.errors import RunLockedError
from lmms_eval.judges import JudgeOptions, open_judge, register_script
from lmms_eval.storage.run_folder import RunFolder
from lmms_eval.tasks.mmie.judge_file import FileJudging
from lmms_eval.tasks.mmie.judge_prompts import JudgeTexts, built_in
from lmms_eval.tasks.mmie.standalone import read_input
from lmms_eval.tasks.mmie.view import in_folder
from tests.tasks.mmie.answers import record, records, write


class Jury:
    """Says what the answer orders; counts what it was asked, and may fail from some question on."""

    def __init__(self, name, fail_after=None):
        self.asked, self.fail_after = [], fail_after
        self.options = JudgeOptions(f"scripted:{name}")
        register_script(name, self)

    def __call__(self, messages, request):
        text = messages.text()
        if self.fail_after is not None and len(self.asked) >= self.fail_after:
            return ResponseError("server_error", "down")
        self.asked.append(text)
        return text.partition("ANSWER=")[2].partition("\n\n### Correct")[0].partition("\n\n### Feedback")[0]

    def open(self):
        return open_judge(self.options)


@pytest.fixture
def start(tmp_path):
    def run(jury, content=None, prompts=None, retries=0, save_step=3):
        folder = write(tmp_path / "in", content if content is not None else records(9))
        data = read_input(json.loads((folder / "data.json").read_text()), "data.json", in_folder(str(folder)))
        places = FileJudging(data, prompts or built_in(), tmp_path / "out" / "r.json", save_step)
        summary, _ = places.finish(jury.open, retries)
        return summary, json.loads(places.output.read_text()), places

    return run


def test_everything_is_judged_once_and_a_second_start_asks_nothing(start):
    jury = Jury("once")
    summary, output, places = start(jury)
    assert len(jury.asked) == 9
    assert summary["categories"]["AVG"]["scored"] == 9
    assert summary["metric"] == "mmie_judge"
    assert [entry["gpt_feedback"] for entry in output] == [f"### Score\n{number % 7}" for number in range(9)]
    assert places.temporary.read_bytes() == places.output.read_bytes()
    again, same, _ = start(jury)
    assert len(jury.asked) == 9
    assert again["reused"] == 9
    assert same == output
    assert again["categories"] == summary["categories"]
    assert places.scores.read_text().count("\n") == 10


def test_a_judge_that_fails_leaves_samples_unscored_and_the_next_start_asks_for_them_alone(start):
    failing = Jury("flaky", fail_after=4)
    summary, output, _ = start(failing)
    assert summary["categories"]["AVG"]["unscored"] == len(summary["unscored"]) == 5
    assert all("server_error" in entry["reason"] for entry in summary["unscored"])
    assert sum("gpt_feedback" in entry for entry in output) == 4
    failing.fail_after = None
    summary, output, _ = start(failing)
    assert len(failing.asked) == 9
    assert summary["categories"]["AVG"]["unscored"] == 0
    assert len(set(failing.asked)) == 9


def test_other_answers_prompts_pictures_and_judges_are_judged_again(start, tmp_path):
    jury = Jury("again")
    start(jury)
    changed = records(9)
    changed[3]["answer"][0]["text"] = "edited"
    start(jury, changed)
    assert len(jury.asked) == 10
    start(jury, changed, JudgeTexts({tag: "x\n" for tag in ("SA", "PBL", "MSR")}, "y", "mine"))
    assert len(jury.asked) == 19
    start(jury, changed)
    assert len(jury.asked) == 19
    other = Jury("another")
    start(other, changed)
    assert len(other.asked) == 9


def test_records_may_move(start):
    jury = Jury("moving")
    start(jury)
    summary, output, _ = start(jury, [record(20, "### Score\n1"), *reversed(records(9))])
    assert len(jury.asked) == 10
    assert output[1]["id"] == "MSR-8"
    assert output[1]["gpt_feedback"] == "### Score\n1"
    assert summary["categories"]["AVG"]["n"] == 10


def test_records_of_one_id_are_told_apart(start):
    jury = Jury("twins")
    twins = [record(0, "### Score\n2"), record(0, "### Score\n5")]
    _, output, _ = start(jury, twins)
    assert [entry["gpt_feedback"][-1] for entry in output] == ["2", "5"]
    summary, output, _ = start(jury, twins)
    assert len(jury.asked) == 2
    assert [entry["gpt_feedback"][-1] for entry in output] == ["2", "5"]
    assert any("2. time" in warning for warning in summary["warnings"])


def test_replies_of_the_benchmarks_own_script_are_taken_over(start, tmp_path, caplog):
    jury = Jury("temp")
    first, second = Jury("temp2"), Jury("temp3")
    _, output, places = start(first)
    places.journal.unlink()
    taken = [entry if number < 4 else {k: v for k, v in entry.items() if k != "gpt_feedback"}
             for number, entry in enumerate(output)]  # fmt: skip
    places.temporary.write_text(json.dumps(taken))
    with caplog.at_level(logging.WARNING):
        start(jury)
    assert len(jury.asked) == 5
    assert "4 replies are taken from" in caplog.text
    start(jury)
    assert len(jury.asked) == 5
    places.journal.unlink()
    places.temporary.write_text("[{")
    start(second)
    assert len(second.asked) == 9


def test_a_torn_journal_line_costs_one_question(start):
    jury = Jury("torn")
    _, _, places = start(jury)
    data = places.journal.read_bytes()
    places.journal.write_bytes(data[: len(data) - 20])
    places.temporary.unlink()
    start(jury)
    assert len(jury.asked) == 10
    start(jury)
    assert len(jury.asked) == 10


def test_two_starts_do_not_judge_into_one_output(start):
    jury = Jury("second")
    _, _, places = start(jury, [])
    first = RunFolder(places.journal.parent)
    first.acquire()
    with pytest.raises(RunLockedError, match="in use by process"):
        start(jury)
    first.release()
    start(jury)
    assert len(jury.asked) == 9


def test_unreadable_replies_are_asked_again_and_kept(start):
    jury = Jury("mute")
    summary, output, places = start(jury, [record(0, "no idea")], retries=2)
    assert len(jury.asked) == 3
    assert [one["id"] for one in summary["unparsable"]] == ["SA-0"]
    assert summary["categories"]["AVG"]["strict_mean"] == 0.0
    assert output[0]["gpt_feedback"] == "no idea"
    assert [json.loads(line)["text"] for line in places.journal.read_text().splitlines()] == ["no idea"] * 3


def test_a_picture_that_cannot_be_read_fails_its_record_alone(start, tmp_path):
    jury = Jury("blind")
    content = [record(0, "### Score\n3"), record(3, "### Score\n3")]
    content[0]["question"][0]["image"] = "data.json"
    summary, output, _ = start(jury, content)
    assert [entry["id"] for entry in summary["failed"]] == ["SA-0"]
    assert "media:" in summary["failed"][0]["error"]
    assert summary["categories"]["AVG"]["scored"] == 1
    assert "gpt_feedback" not in output[0]


def test_nothing_to_judge_needs_no_judge(start):
    class NoJury:
        def open(self):
            raise AssertionError("the judge was built for nothing")

    summary, output, _ = start(NoJury(), [])
    assert output == []
    assert summary["categories"] == {}
    assert summary["judge"] is None


def test_a_damaged_reply_is_taken_from_nowhere_and_asked_again(start):
    jury = Jury("flip")
    _, output, places = start(jury)
    places.temporary.unlink()
    line = places.journal.read_bytes()
    places.journal.write_bytes(line.replace(b"### Score\\n3", b"### Score\\n5"))
    _, again, _ = start(jury)
    assert again == output
    assert len(jury.asked) == 10
    places.temporary.unlink(missing_ok=True)
    places.journal.write_bytes(b'{"id":1,"occurrence":0,"judge":"x","prompt":"y","text":"### Score\\n5"}\n')
    _, again, _ = start(jury)  # a journal of another form
    assert (again, len(jury.asked)) == (output, 19)
    assert places.journal.with_name("judgements-0.jsonl.other-form-1").exists()
