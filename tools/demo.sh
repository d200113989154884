#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make demo: the shipped classifier looks at the shipped pictures. Runs build/reef, or that of a package (tools/packages/unpack_prebuilt.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
reef=build/reef
[[ -x "$reef" ]] || reef=build-prebuilt/bin/reef
model=models/reef_creatures_int8.tflite
labels=models/reef_creatures_labels.txt

echo "== What is in the model ($reef inspect $model)"
$reef inspect "$model" | sed -n "1,16p" | cut -c 1-140
echo "   ..."
echo
echo "== What the Edge TPU would run of it ($reef check $model)"
$reef check "$model" | sed -n "1,12p" | cut -c 1-200
echo
echo "== What it sees ($reef run $model --image PICTURE --labels $labels)"
right=0
total=0
for picture in models/images/*; do
  name=$(basename "$picture")
  expected=${name%%_*}
  line=$($reef run "$model" --image "$picture" --labels "$labels" --top 1 | grep -A1 '^output 0' | tail -n 1)
  seen=$(awk '{print $3}' <<<"$line")
  score=$(awk '{print $2}' <<<"$line")
  mark="wrong"
  [[ "$seen" == "$expected" ]] && mark="right" && right=$((right + 1))
  total=$((total + 1))
  printf '  %-18s -> %-10s %5.1f%%  %s\n' "$name" "$seen" "$(awk -v s="$score" 'BEGIN {print 100 * s}')" "$mark"
done
echo "  $right of $total right"
echo
echo "== Compiled for the Edge TPU ($reef compile $model)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
$reef compile -o "$folder" "$model" 2>&1 | grep -E "^  (on the chip|time|memory|verified|file) "
echo
echo "== On the virtual Edge TPU ($reef run reef_creatures_int8_edgetpu.tflite --device virtual)"
$reef run "$folder/reef_creatures_int8_edgetpu.tflite" --device virtual --image models/images/crab_1.jpg \
  --labels "$labels" --top 1 | grep -A1 -E '^output 0|^Edge TPU' | grep -v -e '^--' -e 'where the time'
echo
echo "== From a float model and pictures to the chip ($reef compile models/reef_creatures_float.tflite --data models/images --preprocess unit)"
$reef compile -o "$folder" models/reef_creatures_float.tflite --data models/images --preprocess unit 2>&1 |
  grep -E "^  (accuracy|on the chip|verified|file) |WARNING"
$reef eval "$folder/reef_creatures_float_int8_edgetpu.tflite" --data models/images --labels "$labels" --metric top1 --device virtual
echo
echo "== From PyTorch ($reef convert models/cifar_resnet8.onnx)"
$reef convert models/cifar_resnet8.onnx -o "$folder/cifar_resnet8.tflite"
echo
echo "== How long it takes ($reef run $model --bench 50 --profile)"
$reef run "$model" --bench 50 --profile --top 0 | grep -v '^input\|^output'
[[ $right -eq $total ]]
