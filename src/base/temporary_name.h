// SPDX-License-Identifier: Apache-2.0
// Names of files that must not outlive the program, and what SIGINT, SIGTERM and SIGHUP do about them.
//
// A file is written under a name that nobody can guess (so that nobody can plant a link there), in the folder where it
// will be, and then renamed. Each such name is on a list that a signal handler can read: the handler removes what is on
// it and lets the signal end the process. Two things are not interrupted, signals wait for their end: making a file
// under such a name (else another thread could make one behind the handler's back), and renaming several files that
// belong together.
//
// Libraries do not install signal handlers: only the program calls install_interrupt_cleanup. A process that is killed
// (SIGKILL) or whose machine stops can leave a file ".reef-...", never half a result. Who writes there next removes it.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace reef {

namespace internal {
struct ListedName;
}

class TemporaryName {
 public:
  enum class Kind { kFile, kFolder };

  // A name that nobody can guess, in `folder` (strays.h). Nothing is made there yet.
  static TemporaryName drawn_in(std::shared_ptr<const FileDescriptor> folder);
  // A name that is chosen already, of at most 63 bytes.
  TemporaryName(std::shared_ptr<const FileDescriptor> folder, const std::string& name, Kind kind = Kind::kFile);
  ~TemporaryName() { remove(); }
  TemporaryName(TemporaryName&& other) noexcept;
  TemporaryName& operator=(TemporaryName&&) = delete;

  const char* name() const;
  int folder() const { return folder_->get(); }
  // Deletes the file of this name, if there is one and it was not given away.
  void remove();
  // The file of this name was renamed, and stays.
  void give_away();

 private:
  std::shared_ptr<const FileDescriptor> folder_;
  internal::ListedName* listed_ = nullptr;  // null: moved from, removed or given away
};

// While one exists, signals wait, on whatever thread they arrive. Only for moments.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
};

// From now on SIGINT, SIGTERM and SIGHUP remove temporary files before they end the process, as signals (the shell sees
// 128 + number). Signals that were ignored stay ignored.
void install_interrupt_cleanup();

// A folder of one's own in the system's folder for temporary files, gone with all that is in it afterwards.
class TemporaryFolder {
 public:
  // "reef_extractor" -> /tmp/reef_extractor_q3xJ0a. A signal removes the folder and `files`, those it may hold.
  static Result<TemporaryFolder> make(const std::string& prefix, std::initializer_list<const char*> files);
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&&) noexcept = default;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder() = default;

  std::string path_;
  std::vector<TemporaryName> names_;  // files, and last the folder
};

}  // namespace reef
