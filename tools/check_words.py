#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do our words name things that exist?

Options are collected from the program's own --help, command by command. Then:
  * every `reef COMMAND --option` in a document, a message or a help text names an option of that command;
  * every other --option in them exists on the commands that can show the text;
  * every file that a document names exists, and every document that a message names;
  * every file that a comment names exists, and every section that a comment or a link names (`page.md#section`);
  * no text promises what is there already, or calls it missing.

Usage: check_words.py REEF SOURCE_FOLDER. Prints what is wrong, one line each; exit code 1 if anything is.
"""

import pathlib
import re
import subprocess
import sys

OPTION = re.compile(r"(?<![\w/.-])(--[a-z][a-zA-Z0-9_-]*)")
# A command in code: up to the end of the line, or to what starts another program (" -- " in `reef virtual-usb` does).
CALL = re.compile(r"(?<![\w/-])(?:build/)?(reef|edgetpu_compiler)((?:\s+(?!&&)[^|;&#`\n]*)?)")
PROMISES = re.compile(r"\b[Tt]o come:|does not do that yet|not there yet|\b[Nn]ot here yet|[Tt]his version of Reef does not", re.S)

# Programs whose options stand in our texts beside ours.
FOREIGN = ("tf2onnx", "pip ", "cmake", "ctest", "ninja", "gtest", "docker", "git ", "clang", "pkg-config", "yolo ", "onnx2tf",
           ".py", ".sh", "make ", "reef_tests", "benchmark", "sweep_binaries", "count_seen", "objdump", "make_docs", "_bench", "_report", "perf ", "unzip", "torchrun")

# Files of other projects that comments name as their source.
FOREIGN_FILES = re.compile(r"^(tensorflow/|libs/(tpu|tensorflow)/|internal/|engine/|fixedpoint\.h|beagle_csr_offsets\.h|edgetpu(_c)?\.h|export\.py)")
# Files of the collection that some tests use.
COLLECTION = re.compile(r"^(truth|zoo)/")
# "x" stands for any name.
EXAMPLES = re.compile(r"^(x|toy_scale)(_\w+)?\.|/x(_\w+)?\.")

# Programs of our own with options that documents name.
TOOLS = ("tools/sweep_binaries",)

# Which commands can show a message of a stage. Those not named here: any command.
READERS = {"check", "inspect", "convert", "compile", "quantize", "run", "eval", "compare", "learn imprint", "learn softmax",
           "learn split"}
SHOWN_BY = {
    "src/import/": READERS,
    "src/compiler/front_end": READERS,
    "src/compiler/resize_inputs": READERS,
    "src/quantize/": {"quantize", "convert", "compile"},
    "src/compiler/quantize_driver": {"quantize"},
    "src/compiler/refusal": {"compile"},
    "apps/reef/front_end_flags": READERS,
    "apps/reef/plan_options": {"check", "compile"},
    # A tuple: one of these has the option, because the file also suggests commands or holds several.
    "apps/reef/compile_": ("compile", "run"),
    "apps/reef/cmd_completion": ("completion", "man"),
    "apps/reef/layer_report": {"run"},
    "apps/reef/stop_dump": {"run"},
    "apps/reef/time_report": {"run"},
    "apps/reef/run_report": {"run"},
}


def help_of(reef, command):
    return subprocess.run([reef, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout


def subcommands_of(text):
    """The commands that help lists, under several headings, where its usage line says COMMAND."""
    if not re.search(r"^Usage: .* COMMAND$", text, re.M):
        return []
    return re.findall(r"^  ([a-z][a-z-]*)(?: |$)", text.split("\nOptions:\n")[0], re.M)


def collect(reef):
    """{"run": {"--device", ...}, "learn split": ...}; "" is the program itself."""
    options, waiting = {}, [""]
    while waiting:
        command = waiting.pop()
        text = help_of(reef, command)
        lines = re.findall(r"^  (?:    )?(-.*?)(?:  |$)", text, re.M)  # "  -o, --output FILE", "      --json"
        options[command] = {name for line in lines for name in re.findall(r"(?<!\S)--?[A-Za-z][\w-]*", line)}
        if command != "help":  # its help is that of the program, which lists the same commands
            waiting += [f"{command} {name}".strip() for name in subcommands_of(text)]
    return options


class Checker:
    def __init__(self, reef, source):
        self.source = source
        self.options = collect(reef)
        self.all = set().union(*self.options.values()) | {"--help", "--version"}
        for tool in TOOLS:
            text = subprocess.run([sys.executable, source / tool, "--help"], capture_output=True, text=True, check=True).stdout
            self.all |= set(OPTION.findall(text))
        self.problems = []
        self.sections = {}
        folders = ("apps", "bench", "bindings", "docs", "examples", "fuzz", "include", "src", "tests", "tools")
        self.names = {path.name for folder in folders for path in (source / folder).rglob("*")}

    def report(self, place, text):
        self.problems.append(f"{place}: {text}")

    def command_of(self, program, words):
        """The command that a call names, or None: 'reef' in prose."""
        if program == "edgetpu_compiler":
            return "compile"
        names = [word for word in words if re.fullmatch(r"[a-z][a-z-]*", word)]
        for length in (2, 1):
            if len(names) >= length and " ".join(words[:length]) in self.options:
                return " ".join(words[:length])
        return None

    def check_calls(self, place, text):
        """Calls with their command; returns the text without them."""
        def one(match):
            words = match[2].split()
            command = self.command_of(match[1], words)
            if command is None:
                return match[0]
            under = [name for name in self.options if name == command or name.startswith(command + " ")]
            known = set().union(*(self.options[name] for name in under)) | {"--help"}
            for option in OPTION.findall(match[2]):
                if option not in known:
                    self.report(place, f"`{match[1]} {command}` has no option {option}")
            return " "
        return CALL.sub(one, text.replace(" -- ", " ;; "))

    def check_free(self, place, text, commands):
        for option in OPTION.findall(text):
            if option in ("--help", "--version"):
                continue
            if commands is None:
                if option not in self.all:
                    self.report(place, f"no command has the option {option}")
            elif isinstance(commands, tuple):
                if not any(option in self.options[c] for c in commands):
                    self.report(place, f"{option} is an option of none of {', '.join(commands)}")
            else:
                lacking = sorted(c for c in commands if option not in self.options[c])
                if lacking:
                    self.report(place, f"{option} is not an option of {', '.join(lacking)}")

    def check_promises(self, place, text):
        for match in PROMISES.finditer(text):
            self.report(place, f"'{match[0]}': say what there is")

    # ---- Documents ----

    def document(self, path):
        name = path.relative_to(self.source)
        in_code = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            place = f"{name}:{number}"
            if line.startswith("```"):
                in_code = not in_code
                continue
            self.check_promises(place, line)
            spans = [line] if in_code else re.findall(r"`([^`]+)`", line)
            rest = " ".join(self.check_calls(place, span) for span in spans)
            row = re.match(r"\| `reef ([a-z]+)", line)
            commands = {row[1]} & set(self.options) if row else None
            if commands and any(c.startswith(row[1] + " ") for c in self.options):
                commands = None
            others = re.findall(r"`reef ([a-z]+)", line)[1:] if row else []
            if others or any(word in line for word in FOREIGN):
                commands = None
            if not any(word in line for word in FOREIGN):
                self.check_free(place, rest, commands or None)
            self.check_files(place, line, in_code, path.parent)

    def exists(self, folder, name):
        name = name.rstrip("/").split("#")[0]
        if not name or "toy_scale" in name.lower():  # HACKING.md's example
            return True
        for base in (folder, self.source, self.source / "docs", self.source / "src", self.source / "tools"):
            if "*" in name or "<" in name:
                pattern = re.sub(r"<[^>]*>", "*", name)
                if any(base.glob(pattern)):
                    return True
            elif (base / name).exists():
                return True
        return False

    def check_files(self, place, line, in_code, folder):
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            if link.startswith(("http", "#", "mailto")):
                continue
            if not self.exists(folder, link):
                self.report(place, f"the link {link} leads nowhere")
            else:
                self.check_section(place, folder, link)
        if in_code:
            return
        pattern = r"`((?:docs|src|tests|tools|bench|apps|bindings|examples|models|include|fuzz|cmake)/[\w./<>*-]*)"
        for name in re.findall(pattern, line):
            if not self.exists(folder, name.rstrip(".")) and not self.exists(folder, re.sub(r"\.\*$", ".h", name)):
                self.report(place, f"there is no {name}")

    def check_section(self, place, folder, name):
        """The section of `page.md#section` exists."""
        page, _, section = name.partition("#")
        if not section:
            return
        for base in (folder, self.source, self.source / "docs"):
            if (base / page).is_file():
                if section not in self.sections_of(base / page):
                    self.report(place, f"{page} has no section #{section}")
                return

    def sections_of(self, page):
        if page not in self.sections:
            titles = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
            self.sections[page] = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
        return self.sections[page]

    # ---- Comments ----

    def comments(self, path):
        """Files and sections that comments of a C++ file name."""
        name = path.relative_to(self.source)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.search(r"(?:^|\s)//(.*)$", line)
            if not match:
                continue
            place = f"{name}:{number}"
            for page in re.findall(r"[\w./<>*-]+\.md(?:#[\w-]+)?(?: \d[\d.]*\b)?", match[1]):
                if " " in page:
                    self.report(place, f"'{page}': sections have names (page.md#section)")
                elif not self.exists(path.parent, page):
                    self.report(place, f"there is no {page}")
                else:
                    self.check_section(place, path.parent, page)
            for file in re.findall(r"(?<![\w./:-])[\w/<>*-]+\.(?:h|cpp|def|py|sh|fbs)\b", match[1]):
                if not self.names_a_file(path, file):
                    self.report(place, f"there is no {file}")

    def names_a_file(self, path, file):
        if FOREIGN_FILES.match(file) or COLLECTION.match(file) or EXAMPLES.search(file):
            return True
        if "/" not in file and "*" not in file and "<" not in file:
            return file in self.names
        return any(self.exists(folder, file) for folder in path.parents if folder.is_relative_to(self.source))

    def check_json_sections(self):
        """What --help calls documented is."""
        text = (self.source / "docs/json.md").read_text()
        for command, options in self.options.items():
            if "--json" in options and f"`reef {command} --json`" not in text:
                self.report("docs/json.md", f"`reef {command} --json` is not described")

    # ---- Messages ----

    def code(self, path):
        name = str(path.relative_to(self.source))
        text = path.read_text()
        for start, literal in literals(text):
            place = f"{name}:{text.count(chr(10), 0, start) + 1}"
            self.check_promises(place, literal)
            for document in re.findall(r"docs/[\w/]+\.md", literal):
                if not (self.source / document).exists():
                    self.report(place, f"there is no {document}")
            rest = self.check_calls(place, literal)
            if any(word in literal for word in FOREIGN):
                continue
            self.check_free(place, rest, self.commands_that_show(name))

    def commands_that_show(self, name):
        for start, commands in SHOWN_BY.items():
            if name.startswith(start):
                return commands
        match = re.match(r"apps/reef/cmd_([a-z]+)\.cpp", name)
        if match and match[1] in self.options:
            return {match[1]} if not any(c.startswith(match[1] + " ") for c in self.options) else None
        return None


def literals(text):
    """(place, text) of C++ string literals; neighbours are joined, as the compiler joins them. No comments."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((.*?)\)"|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)+\'|\s+|.', re.S)
    start, parts = 0, []
    for match in token.finditer(text):
        if match[1] is not None or match[2] is not None:
            start = start if parts else match.start()
            parts.append(match[1] if match[1] is not None else match[2].replace("\\n", "\n"))
        elif not match[0].isspace() and not match[0].startswith("//") and parts:
            yield start, "".join(parts)
            parts = []
    if parts:
        yield start, "".join(parts)


def main():
    reef, source = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    checker = Checker(reef, source)
    for path in [source / "README.md", source / "HACKING.md", source / "src/README.md", *sorted(source.glob("docs/**/*.md"))]:
        checker.document(path)
    checker.check_json_sections()
    for folder in ("apps", "src", "bindings"):
        for path in sorted((source / folder).rglob("*.cpp")):
            if not path.name.endswith(("_test.cpp", "_bench.cpp", "_fuzz.cpp")):
                checker.code(path)
    for folder in ("apps", "src", "bindings", "include", "tests", "bench", "examples"):
        for path in sorted((source / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".def", ".c"):
                checker.comments(path)
    for problem in checker.problems:
        print(problem)
    if not checker.problems:
        print(f"{len(checker.options)} commands, {len(checker.all)} options: all words lead somewhere")
    return 1 if checker.problems else 0


if __name__ == "__main__":
    sys.exit(main())
