import shutil

import pytest
from msgspec.structs import replace

from lmms_eval.errors import ModelError

from .support import answers, ask, build, picture
from .test_model import FAMILIES, content, mixed_requests


@pytest.fixture(scope="module")
def model(tiny):
    return build(tiny, batch_size=8)


def likelihoods(model, **more):
    """Of a choice with the blank that is the default, and of the texts with and without it."""
    asked = [ask(n, "What?", kind="loglikelihood", continuation=text) for n, text in enumerate((" red", " red", "red"))]
    asked[0] = replace(asked[0], implied_delimiter=" ")
    got = answers(model, asked)
    return [got[number].loglikelihood for number in range(3)]


def test_an_implied_delimiter_is_dropped_after_a_chat_template(tiny, model):
    implied, blank, bare = likelihoods(model)
    assert implied == pytest.approx(bare, abs=1e-4) and implied != pytest.approx(blank, abs=1e-4)
    implied, blank, bare = likelihoods(build(tiny, chat_template="none"))
    assert implied == pytest.approx(blank, abs=1e-4) and implied != pytest.approx(bare, abs=1e-4)


def test_a_plain_text_gets_no_template(model):
    request = ask(0, "Q: What?\nA:")
    plain = request.build_messages().model_copy(update={"is_plain": True})
    assert model.prepare(request.with_messages(lambda: plain)).payload.text == "Q: What?\nA:"
    assert model.prepare(request).payload.text != "Q: What?\nA:"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_plain_context_without_a_template(tiny_folders, family, tmp_path):
    """A base model has no template; pictures stand where they stand, and answers end as usual."""
    folder = tmp_path / "base"
    shutil.copytree(tiny_folders[family], folder)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match="chat_template=none"):
        build(folder)
    model = build(folder, chat_template="none", batch_size=8)
    assert model.prepare(ask(0, "Q: What?\nA:")).payload.text == "Q: What?\nA:"
    requests = mixed_requests(8)
    assert content(answers(model, requests)) == content(answers(build(folder, chat_template="none"), requests))
    seen = {answers(model, [ask(0, "It is", [picture(40, 40, seed)])])[0].text for seed in range(3)}
    assert len(seen) > 1
    whole = answers(model, [ask(0, "It is")])[0].text
    assert answers(model, [ask(0, "It is", until=[whole[3:5]])])[0].text == whole[: whole.index(whole[3:5])]
    assert model.identity() != build(folder, chat_template="{{ messages }}").identity()


def test_variables_of_the_template_are_set_by_a_requests_options(tiny, caplog):
    template = "{{ messages[-1].content[0].text }}{% if enable_thinking %} thinks{% else %} answers{% endif %}"
    model = build(tiny, chat_template=template, enable_thinking=True)
    prompts = [
        model.prepare(ask(0, "It", **options)).payload.text
        for options in ({}, {"enable_thinking": False}, {"chat_template_kwargs": {"enable_thinking": False}})
    ]
    assert prompts == ["It thinks", "It answers", "It answers"]
    assert model.generation_options().objection("enable_thinking", False) == ""
    assert "knows no mood" in model.generation_options().objection("chat_template_kwargs", {"mood": 1})
    sent = model.sent_with(ask(0, "It", enable_thinking=False, temperature=0.5, image_aspect_ratio="pad"))
    assert sent["chat_template_kwargs"] == {"enable_thinking": False} and len(sent["chat_template"]) == 64
    assert sent["options"]["temperature"] == 0.5 and "image_aspect_ratio" not in sent["options"]
    assert not caplog.records, "the template reads the variable"
    build(tiny, chat_template="{{ messages[-1].content[0].text }}", enable_thinking=True)
    assert "reads no enable_thinking: it has no effect" in caplog.text
    answers(model, [ask(0, "It", image_aspect_ratio="pad", enable_thinking=True)])
    assert model.describe()["ignored_generation_options"] == ["image_aspect_ratio"]
