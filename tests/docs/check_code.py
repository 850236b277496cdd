#!/usr/bin/python3
"""What a shell's line in a document names of this repository is there.

Usage: check_code.py REPOSITORY

Looks at code blocks, fenced or indented by four: the repository's files, the options of its scripts, presets, targets and
components of CMake, PAGEJIT_* variables, labels and names of tests. Calls of pagejit are documented_commands_test's.
Before that it tries itself on lines whose faults are known.
"""

import json
import pathlib
import re
import shlex
import sys

ASSIGNMENT = re.compile(r"(PAGEJIT_[A-Z_0-9]+)=")
FOLDERS = ("cache/", "generator/", "runtime/", "templates/", "tests/", "tools/")


def code_lines(text: str):
    """The numbers (from 1) and texts of the lines in code blocks."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield number, line.strip()


class Repository:
    def __init__(self, root: pathlib.Path):
        self.root = root
        files = [*root.glob("*"), *(file for folder in FOLDERS for file in (root / folder).rglob("*"))]
        names = [str(file.relative_to(root)) for file in files]
        self.documents = [name for name in names if name.endswith(".md")]
        self.cmake = self.read_all(names, r"(CMakeLists\.txt|\.cmake)$")
        sources = [name for name in names if not name.startswith("tests/docs/")]
        self.code = self.read_all(sources, r"\.(cc|h|sh|py|cmake)$|CMakeLists\.txt$")
        self.tests = self.read_all([name for name in names if name.startswith("tests/")], r"(_test\.cc|CMakeLists\.txt)$")
        presets = json.loads((root / "CMakePresets.json").read_text())
        self.presets = {preset["name"] for kind in ("configure", "build", "test") for preset in presets[kind + "Presets"]}

    def read_all(self, names, pattern: str) -> str:
        files = (self.root / name for name in names if re.search(pattern, name))
        return "\n".join(file.read_text() for file in files if file.is_file())

    def faults(self, line: str):
        """What the line names and the repository does not have."""
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # not a shell's: an apostrophe
            return
        while words and ASSIGNMENT.match(words[0]):
            yield from self.unknown_variable(words.pop(0))
        if not words or words[0] == "pagejit":
            return
        script = ""  # whose options follow
        for word, value in zip(words, words[1:] + [""]):
            if word in ("&&", "|", ";"):
                script = ""
            if word.startswith(FOLDERS):
                if not (self.root / word).exists():
                    yield word + ": no such file"
                elif word.endswith(".sh"):
                    script = word
            elif script and re.fullmatch(r"--[a-z-]+", word):
                if not re.search(rf"(^|[\s|(]){word}[\s|)]", (self.root / script).read_text(), re.M):
                    yield f"{word}: not an option of {script}"
            yield from self.unknown_variable(word.removeprefix("-D"))
            if word == "--preset" and value not in self.presets:
                yield value + ": no such preset"
            elif word == "--target" and not re.search(rf"add_\w+\({value}\b", self.cmake):
                yield value + ": no such target"
            elif word == "--component" and not re.search(rf"COMPONENT {value}\b", self.cmake):
                yield value + ": no such component"
            elif words[0] == "ctest" and word == "-L" and not (self.root / "tests" / value).is_dir():
                yield value + ": no label, as no folder of tests"
            elif words[0] == "ctest" and word == "-R" and not re.search(rf"\b{value}\b", self.tests):
                yield value + ": no such test"

    def unknown_variable(self, word: str):
        found = ASSIGNMENT.match(word)
        if found and not re.search(rf"\b{found[1]}\b", self.code):
            yield found[1] + ": no such variable"


def try_itself(repository: Repository) -> int:
    """How many of the lines whose faults are known were judged otherwise."""
    known = {
        "tools/setup.sh --tests --cross   # both": [],
        "tools/setup.sh --test": ["--test: not an option of tools/setup.sh"],
        "tools/set-up.sh": ["tools/set-up.sh: no such file"],
        "sudo tests/clean_machine/run.sh tools/none.sh": ["tools/none.sh: no such file"],
        "cmake --preset fast -DPAGEJIT_BUILD_TESTS=OFF": ["fast: no such preset"],
        "cmake --preset release -DPAGEJIT_BUILD_TEST_=OFF": ["PAGEJIT_BUILD_TEST_: no such variable"],
        "cmake --build --preset release --target all_of_it": ["all_of_it: no such target"],
        "cmake --install build/release --component tool": ["tool: no such component"],
        "PAGEJIT_RECORDS=x ./engine": ["PAGEJIT_RECORDS: no such variable"],
        "ctest --preset release -L caches": ["caches: no label, as no folder of tests"],
        "ctest --preset release -R DiskCacheTests": ["DiskCacheTests: no such test"],
        "pagejit cache ls --none": [],
    }
    wrong = 0
    for line, faults in known.items():
        found = list(repository.faults(line))
        if found != faults:
            print(f"check_code.py itself: {line}: {found}, must be {faults}")
            wrong += 1
    return wrong


def main() -> int:
    repository = Repository(pathlib.Path(sys.argv[1]).resolve())
    wrong = try_itself(repository)
    num_lines = 0
    for document in repository.documents:
        for number, line in code_lines((repository.root / document).read_text()):
            num_lines += 1
            for fault in repository.faults(line):
                print(f"{document}:{number}: {fault}")
                wrong += 1
    if num_lines < 100:
        print(f"only {num_lines} lines of code in {len(repository.documents)} documents: the search is broken")
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
