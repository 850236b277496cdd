#!/usr/bin/python3
"""clang has to compile the whole library, not only what the fuzzers need of it.

Usage: compile_rest.py REPOSITORY BUILD

Parses each source of the library that has no object in BUILD, with the options that BUILD would compile it with.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

LIBRARY = ("cache", "generator", "runtime", "templates")


def main() -> int:
    repository, build = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    commands = {}
    built = set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        command = shlex.split(entry["command"])
        folder = source.relative_to(repository).parts[0] if source.is_relative_to(repository) else ""
        if folder not in LIBRARY or build in source.parents:
            continue
        if (build / command[command.index("-o") + 1]).exists():
            built.add(source)
        else:
            commands.setdefault(source, command + ["-fsyntax-only"])

    def parse(item) -> str:
        done = subprocess.run(item[1], cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return f"{item[0]}:\n{done.stdout}" if done.returncode else ""

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [text for text in pool.map(parse, commands.items()) if text]
    print("".join(complaints), end="")
    print(f"{len(built)} sources compiled, {len(commands)} parsed, {len(complaints)} of them not legal")
    return 1 if complaints or len(built.union(commands)) < 100 else 0


sys.exit(main())
