// SPDX-License-Identifier: Apache-2.0
#include "base/output_place.h"

#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace reef {
namespace {

namespace fs = std::filesystem;

class OutputPlaceTest : public ::testing::Test {
 protected:
  OutputPlaceTest() : folder_(fs::temp_directory_path() / ("reef_place_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "sub");
  }
  ~OutputPlaceTest() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name) const { ASSERT_TRUE(write_file(path(name), std::string_view("old")).ok()); }

  std::string refusal(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs) const {
    return check_outputs(outputs, inputs).message();
  }
  fs::path folder_;
};

// All names of one file.
TEST_F(OutputPlaceTest, AnInputIsRefusedUnderEveryName) {
  write("in");
  fs::create_hard_link(path("in"), path("hard"));
  fs::create_symlink("in", path("soft"));
  fs::create_symlink(path("soft"), path("sub/soft_of_soft"));
  fs::create_directory_symlink(folder_, path("sub/again"));
  const std::string names[] = {"in", "hard", "soft", "sub/soft_of_soft", "sub/again/in", "sub/../in", "./in", ".//in"};
  for (const std::string& name : names) {
    const std::string message = refusal({path("new"), folder_.string() + "/" + name}, {path("other"), path("in")});
    EXPECT_NE(message.find("would replace the input '" + path("in") + "'"), std::string::npos) << name << message;
  }
  EXPECT_EQ(refusal({path("new"), ""}, {path("in"), "", path("missing"), folder_.string()}), "");
}

TEST_F(OutputPlaceTest, TwoResultsForOneFileAreRefused) {
  write("there");
  fs::create_symlink("there", path("soft"));
  fs::create_symlink("not_there", path("dangling"));
  const std::pair<const char*, const char*> pairs[] = {
      {"new", "new"}, {"new", "sub/../new"}, {"there", "soft"}, {"there", "./there"}, {"dangling", "not_there"}};
  for (const auto& [a, b] : pairs) {
    const std::string message = refusal({folder_.string() + "/" + a, folder_.string() + "/" + b}, {});
    EXPECT_NE(message.find("two results would go to one file"), std::string::npos) << a << ' ' << b << message;
  }
  EXPECT_EQ(refusal({path("new"), path("sub/new"), path("there")}, {}), "");
}

TEST_F(OutputPlaceTest, NothingButRegularFilesIsReplaced) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  fs::create_symlink("fifo", path("link_to_fifo"));
  const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path("socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(server, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::close(server);
  for (const auto& [name, kind] : {std::pair{"fifo", "a FIFO"},
                                   {"link_to_fifo", "a FIFO"},
                                   {"socket", "a socket"},
                                   {"sub", "a folder"},
                                   {"sub/", "a folder"},
                                   {"sub/.", "a folder"}}) {
    const auto place = find_output_place(folder_.string() + "/" + name);
    ASSERT_FALSE(place.ok()) << name;
    EXPECT_NE(place.status().message().find(kind), std::string::npos) << name << place.status().message();
    EXPECT_FALSE(write_file(folder_.string() + "/" + name, std::string_view("x")).ok());
  }
  struct stat info {};
  ASSERT_EQ(::lstat(path("fifo").c_str(), &info), 0);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));
}

TEST_F(OutputPlaceTest, DeviceNodesStay) {
  // A node of the test's own, a copy of /dev/null.
  if (::mknod(path("null").c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) GTEST_SKIP() << "mknod needs root";
  const Status status = write_file(path("null"), std::string_view("x"));
  EXPECT_NE(status.message().find("a device"), std::string::npos) << status.message();
  struct stat info {};
  ASSERT_EQ(::lstat(path("null").c_str(), &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST_F(OutputPlaceTest, OpenFilesAreNoNames) {
  const int fd = ::open(path("open").c_str(), O_RDWR | O_CREAT, 0600);
  const auto place = find_output_place("/proc/self/fd/" + std::to_string(fd));
  ASSERT_FALSE(place.ok());
  EXPECT_NE(place.status().message().find("stands for an open file"), std::string::npos) << place.status().message();
  ::close(fd);
}

TEST_F(OutputPlaceTest, LinksAreFollowedAndStay) {
  write("sub/target");
  fs::create_symlink("sub/target", path("link"));
  fs::create_symlink("sub/made", path("dangling"));
  ASSERT_TRUE(write_file(path("link"), std::string_view("new")).ok());
  ASSERT_TRUE(write_file(path("dangling"), std::string_view("made")).ok());
  EXPECT_TRUE(fs::is_symlink(path("link")) && fs::is_symlink(path("dangling")));
  EXPECT_EQ(read_file(path("sub/target"), 9)->size(), 3u);
  EXPECT_EQ(read_file(path("sub/made"), 9)->size(), 4u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 3);
  fs::create_symlink("round", path("round"));
  EXPECT_FALSE(find_output_place(path("round")).ok());
}

// In a folder like /tmp, a link that somebody else made is a trap.
TEST_F(OutputPlaceTest, PlantedLinksAreNotFollowed) {
  write("victim");
  fs::create_directory(path("shared"));
  ASSERT_EQ(::chmod(path("shared").c_str(), 01777), 0);
  fs::create_symlink(path("victim"), path("shared/out"));
  EXPECT_TRUE(find_output_place(path("shared/out")).ok());  // one's own
  constexpr uid_t kSomebody = 12345;
  if (::lchown(path("shared/out").c_str(), kSomebody, kSomebody) != 0) GTEST_SKIP() << "chown needs root";
  const Status status = write_file(path("shared/out"), std::string_view("x"));
  EXPECT_NE(status.message().find("somebody else's symbolic link"), std::string::npos) << status.message();
  EXPECT_EQ(read_file(path("victim"), 9)->size(), 3u);
}

TEST_F(OutputPlaceTest, MissingFoldersAndLongNamesAreNoticed) {
  const Status missing = check_outputs(std::vector{path("none/out")}, {});
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_NE(missing.message().find("mkdir -p " + path("none")), std::string::npos) << missing.message();
  write("file");
  EXPECT_FALSE(find_output_place(path("file/out")).ok());
  EXPECT_FALSE(find_output_place(path("none/")).ok());
  EXPECT_FALSE(find_output_place("").ok());
  EXPECT_TRUE(find_output_place(path(std::string(255, 'n'))).ok());
  EXPECT_FALSE(find_output_place(path(std::string(256, 'n'))).ok());
}

TEST_F(OutputPlaceTest, WriteProtectedFilesStay) {
  write("protected");
  ASSERT_EQ(::chmod(path("protected").c_str(), 0444), 0);
  const Status status = write_file(path("protected"), std::string_view("new"));
  EXPECT_NE(status.message().find("write-protected (mode 0444)"), std::string::npos) << status.message();
  EXPECT_EQ(read_file(path("protected"), 9)->span()[0], 'o');
}

TEST_F(OutputPlaceTest, FoldersForResultsExistOrCanBeMade) {
  write("file");
  for (const char* name : {"sub", "new", "new/deeper/", "sub/../new"}) {
    EXPECT_TRUE(check_output_folder(folder_.string() + "/" + name).ok()) << name;
  }
  EXPECT_TRUE(check_output_folder("no_such_folder_here").ok());
  EXPECT_FALSE(check_output_folder(path("file")).ok());
  EXPECT_FALSE(check_output_folder(path("file/deeper")).ok());
}

}  // namespace
}  // namespace reef
