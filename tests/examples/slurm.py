"""Programs of SLURM that run jobs as processes of this machine: each "node" of ``srun`` is one."""

from __future__ import annotations

import os
import stat
import sys
import textwrap
from pathlib import Path

PROGRAMS = {
    "sbatch": """
        import os, pathlib, shutil, subprocess, sys
        spool, options, rest = pathlib.Path(os.environ["SPOOL"]), {}, sys.argv[1:]
        while rest[0].startswith("--"):
            name, _, options[name] = rest.pop(0).partition("=")
            options[name] = options.pop(name)
        script = shutil.copy(rest.pop(0), spool / "slurm_script")
        first, _, last = options.get("--array", "0-0").partition("-")
        nodes = options.get("--nodes", "1")
        for number in range(int(first), int(last) + 1):
            job, restarts = str(100 + number), 0
            while True:
                place = {
                    "SLURM_JOB_ID": job, "SLURM_ARRAY_TASK_ID": str(number), "SLURM_RESTART_COUNT": str(restarts),
                    "SLURM_SUBMIT_DIR": os.getcwd(), "SLURM_JOB_NUM_NODES": nodes, "SLURM_JOB_NODELIST": "n",
                }
                batch = subprocess.Popen(["bash", script, *rest], env={**os.environ, **place}, start_new_session=True)
                (spool / "pid").write_text(str(batch.pid))
                code = batch.wait()
                with open(spool / "codes", "a") as codes:
                    codes.write(f"{job} {restarts} {code}\\n")
                queued = spool / f"requeue.{job}"
                if not queued.exists():
                    break
                queued.unlink()
                restarts += 1
    """,
    "srun": """
        import os, signal, subprocess, sys
        nodes = [
            subprocess.Popen(sys.argv[1:], env={**os.environ, "SLURM_NODEID": str(node), "SLURM_PROCID": str(node)})
            for node in range(int(os.environ["SLURM_JOB_NUM_NODES"]))
        ]
        signal.signal(signal.SIGTERM, lambda *_: [node.terminate() for node in nodes if node.poll() is None])
        sys.exit(max(code if code >= 0 else 128 - code for code in [node.wait() for node in nodes]))
    """,
    "scontrol": """
        import os, pathlib, sys
        if sys.argv[1] == "requeue":
            pathlib.Path(os.environ["SPOOL"], f"requeue.{sys.argv[2]}").touch()
        else:
            assert sys.argv[1:3] == ["show", "hostnames"], sys.argv
            print("\\n".join(["127.0.0.1"] * int(os.environ["SLURM_JOB_NUM_NODES"])))
    """,
}


def install(folder: Path) -> dict[str, str]:
    """Write the programs; returns an environment in which they, and this Python's, are found."""
    programs, spool = folder / "bin", folder / "spool"
    for made in (programs, spool):
        made.mkdir()
    for name, code in PROGRAMS.items():
        path = programs / name
        path.write_text(f"#!{sys.executable}\n{textwrap.dedent(code)}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    found = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": found, "SPOOL": str(spool), "OPENAI_API_KEY": "stub", "OMP_NUM_THREADS": "1"}
