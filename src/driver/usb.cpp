// SPDX-License-Identifier: Apache-2.0
#include "driver/usb.h"

namespace reef::driver {

std::string_view name_of(TransferEnd end) {
  switch (end) {
    case TransferEnd::kDone:
      return "done";
    case TransferEnd::kTimedOut:
      return "timed out";
    case TransferEnd::kStalled:
      return "stalled";
    case TransferEnd::kUnplugged:
      return "unplugged";
    case TransferEnd::kOverflow:
      return "overflow";
    case TransferEnd::kCancelled:
      return "cancelled";
    case TransferEnd::kFailed:
      return "failed";
  }
  return "failed";
}

Status transfer_error(std::string_view what, Outcome outcome) {
  switch (outcome.end) {
    case TransferEnd::kTimedOut:
      return make_error(StatusCode::kIoError, "{} timed out after {} bytes", what, outcome.bytes);
    case TransferEnd::kStalled:
      return make_error(StatusCode::kIoError, "{} failed: the device refused it", what);
    case TransferEnd::kUnplugged:
      return make_error(StatusCode::kIoError, "{} failed: the device is unplugged", what);
    case TransferEnd::kOverflow:
      return make_error(StatusCode::kIoError, "{} failed: the device sent too much", what);
    case TransferEnd::kCancelled:
      return make_error(StatusCode::kIoError, "{} was cancelled", what);
    case TransferEnd::kDone:  // with too few bytes
      return make_error(StatusCode::kIoError, "{} ended early, after {} bytes", what, outcome.bytes);
    case TransferEnd::kFailed:
      break;
  }
  return make_error(StatusCode::kIoError, "{} failed", what);
}

Status in_use_error(std::string_view holder) {
  return make_error(StatusCode::kResourceExhausted,
                    "the device is in use by {}: end that program, or use another device", holder);
}

}  // namespace reef::driver
