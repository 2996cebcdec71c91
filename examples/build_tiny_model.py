"""Write a tiny vision-language model with random weights, for trying out ``--model hf`` without a download.

    python examples/build_tiny_model.py FOLDER [--architecture idefics3] [--seed 0]
    python -m lmms_eval --model hf --model_args pretrained=FOLDER --tasks ...

Its answers are nonsense.
"""

from __future__ import annotations

import argparse

from lmms_eval.models.tiny import ARCHITECTURES, build_tiny_vlm


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a tiny vision-language model with random weights.")
    parser.add_argument("folder", help="folder to write; created if absent")
    parser.add_argument("--architecture", choices=ARCHITECTURES, default=ARCHITECTURES[0])
    parser.add_argument("--seed", type=int, default=0, help="of the random weights")
    arguments = parser.parse_args()
    folder = build_tiny_vlm(arguments.folder, architecture=arguments.architecture, seed=arguments.seed)
    print(f"{folder}: a random {arguments.architecture} model; its answers are nonsense")


if __name__ == "__main__":
    main()
