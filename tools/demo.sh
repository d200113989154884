#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make demo: a detector from PyTorch becomes a file for the Edge TPU, sees the same things on a virtual one, and a classifier names sea
# creatures. Runs build/reef, or that of a package (tools/packages/unpack_prebuilt.sh). Fails if a creature is taken for another.
set -euo pipefail
cd "$(dirname "$0")/.."
reef=build/reef
[[ -x "$reef" ]] || reef=build-prebuilt/bin/reef
folder=$(dirname "$reef")/demo
mkdir -p "$folder"

# Prints a command, runs it, and shows the lines of its summary that are asked for ("on the chip|time").
show() {
  local lines=$1 output
  shift
  echo "  \$ $*"
  output=$("$@" 2>&1) || { echo "$output"; exit 1; }
  grep -E "^  ($lines) " <<<"$output" | sed 's/^/  /; s/ (simulated from.*/ (simulated)/; s/; overlap .*//'
}

echo "1. A small YOLO from PyTorch looks at a picture, on this machine's CPU:"
show answer $reef run models/shapes_yolo.onnx --image models/shapes/shapes_08.jpg --preprocess yolo
echo
echo "2. Reef quantizes it with a dozen pictures and compiles it for the Edge TPU:"
show "on the chip|accuracy|verified" $reef compile models/shapes_yolo.onnx --data models/shapes --preprocess yolo -o "$folder"
echo
echo "3. The compiled file looks at the same picture, on a virtual Edge TPU, and draws what it sees:"
show "answer|on the chip|picture" $reef run "$folder/shapes_yolo_int8_edgetpu.tflite" --device virtual --image models/shapes/shapes_08.jpg \
  --labels models/shapes_yolo_labels.txt --draw "$folder/seen.png"
echo
echo "4. A classifier, compiled too, names the creatures in models/images:"
$reef compile models/reef_creatures_int8.tflite -o "$folder" --quiet
right=0 total=0 line=
for picture in models/images/*; do
  seen=$($reef run "$folder/reef_creatures_int8_edgetpu.tflite" --device virtual --image "$picture" \
    --labels models/reef_creatures_labels.txt | sed -n 's/^  answer *\([a-z]*\) .*/\1/p')
  name=$(basename "$picture")
  total=$((total + 1))
  if [[ "$seen" == "${name%%_*}" ]]; then
    right=$((right + 1))
  else
    seen="$seen (wrong: $name)"
  fi
  line+="${line:+, }$seen"
done
fold -s -w 100 <<<"$line" | sed 's/^/    /'
echo "    $right of $total right"
echo
echo "Your turn: $reef compile MODEL --data PHOTOS. docs/start.md goes through it step by step."
[[ $right -eq $total ]]
