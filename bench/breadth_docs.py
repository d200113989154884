#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/breadth.md, from what the benches measured.

    bench/breadth.py build/reef ... --json NEW.json         (or bench/pretrained.py, bench/ways.py)
    bench/breadth_docs.py take SECTION NEW.json...          measured rows replace those of the same name
    bench/breadth_docs.py write                             the tables of docs/breadth.md anew
    bench/breadth_docs.py check                             fails if they are not what the results say

Results lie in bench/results/SECTION.json, one short record for each model. In the page a table stands between
"<!-- results: SECTION -->" (or "<!-- results: SECTION open -->": only rows with something open: not equal, below 10 dB, not whole
on the chip, not verified, not sound) and "<!-- end -->", with a line of totals above it.
"""
import argparse
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, RESULTS = ROOT / "docs" / "breadth.md", ROOT / "bench" / "results"
EQUAL, LEAST_DB = 1e-3, 10
FIGURES = {"db": "dB", "auto": "automatic dB", "ort": "ORT dB", "ort_percentile": "ORT percentile dB", "aieq": "AIEQ dB"}
PRETRAINED = {"minmax": "min-max", "auto": "automatic", "ort": "ORT min-max", "ort_percentile": "ORT percentile", "aieq": "AIEQ"}
TIMES = ("convert_s", "quantize_s", "compile_s")


def record(row):
    """What a page says of a measured row, whichever bench wrote it."""
    result = {"name": row["name"].removesuffix("_dynamo")}
    if "failed" in row:
        return result | {"failed": row["failed"][:200]}
    if row.get("side"):
        result["side"] = row["side"]
    for key in ("difference", "same"):
        if key in row:
            result["equal"] = bool(row[key] < EQUAL)
    if isinstance(row.get("minmax"), dict):  # pretrained.py
        result |= {key: row[key] for key in PRETRAINED if key in row} | {"task": row.get("task", "")}
        for key in PRETRAINED:
            if key in result:
                result[key] = {k: round(v, 4) if isinstance(v, float) else v for k, v in result[key].items()
                               if k in ("db", "task", "asked")}
    else:
        result |= {key: round(row[key], 2) if isinstance(row[key], float) else str(row[key])[:60] for key in FIGURES if key in row}
    if row.get("products"):
        result["products"] = round(row["products_on_chip"] / row["products"], 4)
    result |= {key: row[key] for key in ("on_chip", "ops", "verified", "sound") if key in row}
    return result | {key: round(row[key], 2) for key in TIMES if key in row and row[key] >= 0}


def load(section):
    path = RESULTS / f"{section}.json"
    return json.loads(path.read_text()) if path.exists() else []


def take(section, files):
    rows = {row["name"]: row for row in load(section)}
    for file in files:
        rows |= {row["name"]: row for row in map(record, json.loads(pathlib.Path(file).read_text()))
                 if not row.get("failed", "").startswith(("not exported", "this script"))}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{section}.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows.values()) + "\n]\n")


def is_open(row):
    low = isinstance(row.get("db"), float) and row["db"] < LEAST_DB and not row.get("auto", 0) >= LEAST_DB
    return "failed" in row or not row.get("equal", True) or low or row.get("on_chip") != row.get("ops") or \
        row.get("verified") is not True or row.get("sound") is False


def figure(value):
    if isinstance(value, dict):
        share = value.get("task")
        asked = f" of {value['asked']}" if "asked" in value else ""
        return figure(value["db"]) + (f" ({100 * share:.1f} %{asked})" if share is not None else "")
    if isinstance(value, (int, float)):
        return f"{value:.1f}"
    return str(value).replace("|", "/")[:60] if value else "-"


def cells(row, keys):
    said = {True: "yes", False: "NO", None: "-"}
    for key, _ in keys:
        if key == "on_chip":
            yield f"{row['on_chip']} of {row['ops']}" if "ops" in row else "-"
        elif key == "products":
            yield f"{100 * row['products']:.0f} %" if "products" in row else "-"
        elif key in ("equal", "verified", "sound"):
            yield said[row.get(key)]
        elif key in ("name", "side", "task"):
            yield str(row.get(key) or "-")
        else:
            yield figure(row.get(key))


def table(rows):
    is_pretrained = any(isinstance(row.get("minmax"), dict) for row in rows)
    keys = [("name", "file" if is_pretrained else "model"), ("side", "side"), ("equal", "converted")]
    keys += list((PRETRAINED | {"task": "task"} if is_pretrained else FIGURES).items())
    keys += [("on_chip", "on chip"), ("products", "products on chip"), ("verified", "verified"), ("sound", "sound")]
    keys = [(key, title) for key, title in keys if any(key in row for row in rows)]
    yield "| " + " | ".join(title for _, title in keys) + " |"
    yield "| " + " | ".join("---" for _ in keys) + " |"
    for row in rows:
        if "failed" in row:
            yield f"| {row['name']} | {row['failed']} |" + " |" * (len(keys) - 2)
        else:
            yield "| " + " | ".join(cells(row, keys)) + " |"


def totals(rows):
    done = [row for row in rows if "failed" not in row]
    compared = [row for row in done if "equal" in row]
    parts = [f"{len(rows)} measured", f"{len(done)} through the whole chain", f"{sum(row['equal'] for row in compared)} of {len(compared)} equal"]
    judged = [row for row in done if isinstance(row.get("db"), float)]
    if judged:
        at_10 = sum(max(row["db"], row["auto"] if isinstance(row.get("auto"), float) else row["db"]) >= LEAST_DB for row in judged)
        parts.append(f"{at_10} of {len(judged)} at 10 dB or more" + (" (min-max or automatic)" if any("auto" in row for row in judged) else ""))
    whole = [row for row in done if "ops" in row]
    parts.append(f"{sum(row['on_chip'] == row['ops'] for row in whole)} whole on the chip")
    parts.append(f"{sum(row.get('verified') is True for row in done)} verified")
    parts.append(f"{sum(row.get('sound') is True for row in done)} sound")
    for key in TIMES:
        times = [row[key] for row in done if key in row]
        if times:
            parts.append(f"{key[:-2]} median {statistics.median(times):.2f} CPU s (measured)")
    return "; ".join(parts) + "."


def section_text(section, which):
    rows = load(section)
    if not rows:
        raise SystemExit(f"bench/results/{section}.json has no rows")
    shown = [row for row in rows if is_open(row)] if which == "open" else rows
    lines = [totals(rows), ""] + (list(table(shown)) if shown else [])
    return "\n".join(lines)


def written(page):
    def replaced(match):
        return f"{match[1]}\n{section_text(match[2], match[3])}\n<!-- end -->"
    return re.sub(r"(<!-- results: (\w+) ?(\w*) -->)\n.*?<!-- end -->", replaced, page, flags=re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["take", "write", "check"])
    parser.add_argument("section", nargs="?", help="of take: which results the files are")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    if arguments.action == "take":
        take(arguments.section, arguments.files)
        return
    page = PAGE.read_text()
    if arguments.action == "write":
        PAGE.write_text(written(page))
    elif written(page) != page:
        sys.exit("docs/breadth.md is not what bench/results says: run bench/breadth_docs.py write")


if __name__ == "__main__":
    main()
