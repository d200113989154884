// SPDX-License-Identifier: Apache-2.0
// Samples that are picture files. What is right for a picture is, in this order: what a file of names and labels says;
// boxes in a text file of the folder "labels" beside its folder "images"; the number of its sub-folder (by the file of
// class names, by the folder's own number, or by the order of folder names); boxes in a text file beside it; a class
// name or number that its own name begins with.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include <fmt/ranges.h>

#include "base/file.h"
#include "data/dataset.h"
#include "data/dataset_files.h"
#include "data/input_names.h"
#include "data/labels.h"
#include "data/shard_files.h"
#include "formats/image/image.h"

namespace reef::data {
namespace {

namespace fs = std::filesystem;

// Paths of pictures, and the pictures by their names below the folder.
struct PictureFiles {
  std::vector<std::string> paths;
  std::vector<NamedPicture> pictures;

  const std::string& path(const NamedPicture& picture) const { return paths[picture.place]; }
};

std::string lower_ending(const fs::path& path) {
  std::string text = path.extension().string();
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// What a folder without pictures holds instead, and how that becomes pictures.
std::string describe_others(const std::map<std::string, int>& others) {
  if (others.empty()) return ": it is empty";
  static const std::map<std::string, std::string> kAdvice = {
      {".mp4", "videos: `ffmpeg -i VIDEO -r 1 frame_%04d.jpg` saves a frame a second"},
      {".avi", "videos: `ffmpeg -i VIDEO -r 1 frame_%04d.jpg` saves a frame a second"},
      {".mov", "videos: `ffmpeg -i VIDEO -r 1 frame_%04d.jpg` saves a frame a second"},
      {".mkv", "videos: `ffmpeg -i VIDEO -r 1 frame_%04d.jpg` saves a frame a second"},
      {".heic", "pictures of a phone: save them as JPEG"},
      {".tif", "pictures that Reef does not read: save them as JPEG or PNG"},
      {".tiff", "pictures that Reef does not read: save them as JPEG or PNG"},
      {".zip", "archives: unpack them"},
      {".npy", "arrays: give one .npy or .npz file instead of the folder"},
      {".npz", "arrays: give one .npy or .npz file instead of the folder"}};
  const auto most =
      std::max_element(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto advice = kAdvice.find(most->first);
  return fmt::format("; most of its files {}{}",
                     most->first.empty() ? "have names without an ending" : "end in " + most->first,
                     advice == kAdvice.end() ? "" : ", which are " + advice->second);
}

Result<PictureFiles> pictures_below(const std::string& folder) {
  PictureFiles files;
  std::map<std::string, int> others;  // files that are no pictures, by the ending of their names
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    if (!is_picture_name(it->path().string())) {
      ++others[lower_ending(it->path())];
      continue;
    }
    files.pictures.push_back({fs::relative(it->path(), folder, error).generic_string(), files.paths.size(), {}});
    files.paths.push_back(it->path().string());
  }
  if (error) return make_error(StatusCode::kIoError, "cannot read folder '{}': {}", folder, error.message());
  REEF_REQUIRE(!files.paths.empty(), "folder '{}' holds no pictures (.jpg, .png, .bmp, .webp){}", folder,
               describe_others(others));
  std::sort(files.pictures.begin(), files.pictures.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

// Pictures that cannot be read go to `left_out`; an error where none is left.
Status leave_out_damaged(PictureFiles& files, std::vector<std::string>& left_out) {
  Status first;
  std::erase_if(files.pictures, [&](const NamedPicture& picture) {
    const Status status = image::probe(files.path(picture));
    if (status.ok()) return false;
    if (left_out.empty()) first = status;
    left_out.push_back(picture.name);
    return true;
  });
  return files.pictures.empty() ? first : ok_status();
}

// The longest class name that the file's name begins with, as a word.
std::optional<std::int64_t> class_in_name(const std::string& name, const std::vector<std::string>& class_names) {
  std::optional<std::int64_t> best;
  std::size_t length = 0;
  for (std::size_t i = 0; i < class_names.size(); ++i) {
    const std::string word = lower(class_names[i]);
    if (word.size() <= length || !lower(name).starts_with(word)) continue;
    const char next = word.size() < name.size() ? name[word.size()] : '.';
    if (std::isalpha(static_cast<unsigned char>(next)) != 0) continue;
    best = static_cast<std::int64_t>(i);
    length = word.size();
  }
  return best;
}

bool label_by_name(std::vector<NamedPicture>& pictures, const std::vector<std::string>& class_names) {
  for (NamedPicture& picture : pictures) {
    const std::string name = fs::path(picture.name).filename().string();
    const auto label = class_names.empty() ? leading_number(name) : class_in_name(name, class_names);
    if (!label) return false;
    picture.right = class_truth(*label);
  }
  return true;
}

class FolderStore : public SampleStore {
 public:
  std::string folder;
  PictureFiles files;
  std::string truth_from;                       // words; empty: nothing is known
  std::vector<std::string> left_out;            // pictures that cannot be read, by name
  std::map<std::int64_t, std::string> folders;  // that are classes

  std::int64_t size() const override { return static_cast<std::int64_t>(files.pictures.size()); }

  Result<StoredSample> stored(std::int64_t sample, const InputSpec& /*input*/) const override {
    REEF_ASSIGN_OR_RETURN(Bytes file, read_file(files.path(picture(sample)), image::kMaxFileBytes));
    REEF_REQUIRE(!file.empty(), "{}: the file is empty", files.path(picture(sample)));
    return StoredSample{std::move(file), {}};
  }

  bool has_truth() const override { return !truth_from.empty(); }
  Result<Truth> truth(std::int64_t sample) const override {
    REEF_REQUIRE(has_truth(),
                 "'{}' does not say what is right: put pictures into a sub-folder for each class, give a "
                 "file of names and labels, or put boxes ('class cx cy w h') into a .txt file beside each picture",
                 folder);
    return picture(sample).right;
  }
  bool holds_pictures() const override { return true; }
  std::string describe() const override {
    constexpr std::size_t kMostNamed = 5;
    std::string text = fmt::format("pictures of {}{}", folder, truth_from.empty() ? "" : ", " + truth_from);
    if (left_out.empty()) return text;
    const std::size_t named = std::min(left_out.size(), kMostNamed);
    text += fmt::format("; {} left out as damaged: {}", left_out.size(),
                        fmt::join(left_out.begin(), left_out.begin() + static_cast<std::ptrdiff_t>(named), ", "));
    return left_out.size() > named ? text + fmt::format(" and {} more", left_out.size() - named) : text;
  }
  std::string name_of(std::int64_t sample) const override { return picture(sample).name; }
  std::string place_of(std::int64_t sample, const InputSpec& /*input*/) const override {
    return files.path(picture(sample));
  }
  std::map<std::int64_t, std::string> class_names() const override { return folders; }

 private:
  const NamedPicture& picture(std::int64_t sample) const { return files.pictures[reef::at(sample)]; }
};

fs::path boxes_beside(const std::string& picture) { return fs::path(picture).replace_extension(".txt"); }

// As Ultralytics' data sets have it: "set/images/train/1.jpg" has its boxes in "set/labels/train/1.txt". Empty: the
// picture is in no folder "images".
fs::path boxes_in_labels_folder(const std::string& picture) {
  const std::string path = fs::absolute(picture).lexically_normal().string();
  constexpr std::string_view kImages = "/images/";
  const std::size_t at = path.rfind(kImages);
  if (at == std::string::npos) return {};
  return boxes_beside(path.substr(0, at) + "/labels/" + path.substr(at + kImages.size()));
}

// If any picture has such a file of boxes, those without one show nothing.
Status label_by_boxes(fs::path (*boxes_of)(const std::string&), std::string from, FolderStore& store) {
  std::error_code error;
  std::size_t empty = 0;
  std::vector<std::pair<NamedPicture*, std::string>> found;
  for (NamedPicture& picture : store.files.pictures) {
    const fs::path path = boxes_of(store.files.path(picture));
    if (!path.empty() && fs::exists(path, error)) {
      found.emplace_back(&picture, path.string());
    } else {
      ++empty;
    }
  }
  if (found.empty()) return ok_status();
  for (NamedPicture& picture : store.files.pictures) picture.right = Truth{ir::DataType::kFloat64, {0, 5}, {}};
  for (const auto& [picture, path] : found) {
    REEF_ASSIGN_OR_RETURN(picture->right, load_boxes(path));
  }
  if (empty > 0) from += fmt::format("; {} without such a file show{} nothing", empty, empty == 1 ? "s" : "");
  store.truth_from = std::move(from);
  return ok_status();
}

Status label_all(const DatasetOptions& options, FolderStore& store) {
  std::vector<std::string> class_names;
  if (!options.labels.empty()) {
    REEF_ASSIGN_OR_RETURN(class_names, load_class_names(options.labels));
  }
  std::vector<NamedPicture>& pictures = store.files.pictures;
  if (!options.truth.empty()) {
    REEF_RETURN_IF_ERROR(label_by_file(options.truth, pictures, class_names));
    store.truth_from = "labels from " + options.truth;
    return ok_status();
  }
  REEF_RETURN_IF_ERROR(label_by_boxes(boxes_in_labels_folder, "boxes from .txt files in the folder 'labels'", store));
  if (store.has_truth()) return ok_status();
  const auto in_folder = [](const NamedPicture& picture) { return !first_folder(picture.name).empty(); };
  if (std::all_of(pictures.begin(), pictures.end(), in_folder)) {
    REEF_ASSIGN_OR_RETURN(store.folders, label_by_folder(pictures, class_names));
    store.truth_from = "classes by sub-folder";
    return ok_status();
  }
  REEF_RETURN_IF_ERROR(label_by_boxes(boxes_beside, "boxes from .txt files beside the pictures", store));
  if (store.has_truth()) return ok_status();
  if (label_by_name(pictures, class_names)) {
    store.truth_from = class_names.empty() ? "classes by the number that names begin with"
                                           : "classes by the word that names begin with";
  }
  return ok_status();
}

}  // namespace

std::vector<std::string> dataset_files(const DatasetOptions& options) {
  std::vector<std::string> files = {options.path, options.truth, options.labels};
  if (const auto found = find_sample_files(options.path); found.ok())
    files.insert(files.end(), found->files.begin(), found->files.end());
  std::error_code error;
  if (!fs::is_directory(options.path, error)) return files;
  const auto pictures = pictures_below(options.path);
  if (!pictures.ok()) return files;
  for (const std::string& path : pictures->paths) {
    files.push_back(path);
    files.push_back(boxes_beside(path).string());  // boxes, if there are such files
    if (const fs::path boxes = boxes_in_labels_folder(path); !boxes.empty()) files.push_back(boxes.string());
  }
  return files;
}

Result<std::unique_ptr<SampleStore>> open_folder(const DatasetOptions& options) {
  auto store = std::make_unique<FolderStore>();
  store->folder = options.path;
  REEF_ASSIGN_OR_RETURN(store->files, pictures_below(options.path));
  REEF_RETURN_IF_ERROR(leave_out_damaged(store->files, store->left_out));
  REEF_RETURN_IF_ERROR(label_all(options, *store));
  return std::unique_ptr<SampleStore>(std::move(store));
}

}  // namespace reef::data
