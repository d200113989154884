#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput of 1 to 8 Edge TPUs on one host, in simulated time (`reef run --throughput`), as the table of
docs/performance.md#several-edge-tpus. Nothing is timed: the same program gives the same table on every machine.

    bench/replica_scaling.py build/reef models/reef_creatures_int8.tflite ... [--links usb3 pcie] [--devices 8] [--docs docs/performance.md]
"""

import argparse
import json
import os
import re
import subprocess

BEGIN, END = "<!-- replica_scaling.py writes from here -->", "<!-- to here -->"


def predictions(reef, model, link, devices):
    command = [reef, "run", model, "--devices", str(devices), "--throughput", "--link", link, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def saturation(rows):
    """The first number of devices that has nine tenths of the most; what is busy there."""
    most = max(row["per_second"] for row in rows)
    first = next(row for row in rows if row["per_second"] >= 0.9 * most)
    last = rows[-1]
    busiest = max((last["host_share"], "host"), (last["controller_share"], "controller"), (last["chip_share"], "chips"))
    if busiest[1] == "chips" and last["chip_share"] > 0.8:
        return "not yet"
    return f"{first['devices']} ({busiest[1]} {100 * busiest[0]:.0f} % busy)"


def table(reef, models, links, devices):
    shown = [count for count in (1, 2, 3, 4, 6, 8) if count <= devices]
    lines = ["| model | link | " + " | ".join(f"{count}" for count in shown) + " | nine tenths of the most with |",
             "| --- | --- | " + " | ".join("---:" for _ in shown) + " | --- |"]
    for model in models:
        for link in links:
            rows = predictions(reef, model, link, devices)["predictions"]
            cells = []
            for count in shown:
                row = rows[count - 1]
                way = "" if row["segments"] == 1 else f" ({row['replicas']} x {row['segments']})"
                cells.append(f"{row['per_second']:.0f}{way}")
            name = re.sub(r"\.tflite$", "", os.path.basename(model))
            lines.append(f"| {name} | {link} | " + " | ".join(cells) + f" | {saturation(rows)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--links", nargs="+", default=["usb3", "pcie"])
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--docs", help="page whose table is replaced")
    arguments = parser.parse_args()
    text = table(arguments.reef, arguments.models, arguments.links, arguments.devices)
    print(text)
    if arguments.docs:
        with open(arguments.docs, encoding="utf-8") as file:
            page = file.read()
        before, rest = page.split(BEGIN)
        with open(arguments.docs, "w", encoding="utf-8") as file:
            file.write(before + BEGIN + "\n" + text + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
