// SPDX-License-Identifier: Apache-2.0
// Samples that are picture files. What is right for a picture is, in this order: what a file of names and labels says;
// the number of its sub-folder (by the file of class names, by the folder's own number, or by the order of folder
// names); boxes in a text file beside it; a class name or number that its own name begins with.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "base/file.h"
#include "data/dataset.h"
#include "data/dataset_files.h"
#include "data/labels.h"
#include "formats/image/image.h"

namespace reef::data {
namespace {

namespace fs = std::filesystem;

struct PictureFile {
  std::string path, relative;
  Truth right;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_picture(const fs::path& path) {
  static const std::set<std::string> kEndings = {".jpg", ".jpeg", ".png", ".bmp", ".gif",
                                                 ".tga", ".ppm",  ".pgm", ".webp"};
  return kEndings.contains(lower(path.extension().string()));
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
      {".tfrecord", "TensorFlow's records: write their pictures as files, or their arrays as .npz"},
      {".npy", "arrays: give one .npy or .npz file instead of the folder"},
      {".npz", "arrays: give one .npy or .npz file instead of the folder"}};
  const auto most =
      std::max_element(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto advice = kAdvice.find(most->first);
  return fmt::format("; most of its files {}{}",
                     most->first.empty() ? "have names without an ending" : "end in " + most->first,
                     advice == kAdvice.end() ? "" : ", which are " + advice->second);
}

Result<std::vector<PictureFile>> pictures_below(const std::string& folder) {
  std::vector<PictureFile> files;
  std::map<std::string, int> others;  // files that are no pictures, by the ending of their names
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    if (is_picture(it->path())) {
      files.push_back({it->path().string(), fs::relative(it->path(), folder, error).generic_string(), {}});
    } else {
      ++others[lower(it->path().extension().string())];
    }
  }
  if (error) return make_error(StatusCode::kIoError, "cannot read folder '{}': {}", folder, error.message());
  REEF_REQUIRE(!files.empty(), "folder '{}' holds no pictures (.jpg, .png, .bmp, .webp){}", folder,
               describe_others(others));
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.relative < b.relative; });
  return files;
}

std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  return end == text.data() + text.size() || *end == '_' || *end == '-' || *end == '.' ? std::optional(value)
                                                                                       : std::nullopt;
}

Truth class_truth(std::int64_t label) { return {ir::DataType::kInt64, {}, {static_cast<double>(label)}}; }

std::string first_folder(const PictureFile& file) {
  const std::size_t slash = file.relative.find('/');
  return slash == std::string::npos ? "" : file.relative.substr(0, slash);
}

// All pictures are in sub-folders. Afterwards the classes take turns, so that the first N pictures are of all classes.
Status label_by_folder(std::vector<PictureFile>& files, const std::vector<std::string>& class_names) {
  std::map<std::string, std::int64_t> number;
  for (const PictureFile& file : files) number[first_folder(file)] = -1;
  const bool are_numbers = std::all_of(number.begin(), number.end(),
                                       [](const auto& entry) { return leading_number(entry.first).has_value(); });
  std::int64_t next = 0;
  for (auto& [name, label] : number) {
    label = are_numbers ? *leading_number(name) : next++;
    if (class_names.empty()) continue;
    const auto found = std::find(class_names.begin(), class_names.end(), name);
    REEF_REQUIRE(found != class_names.end() || are_numbers, "sub-folder '{}' is no class of the labels file", name);
    if (found != class_names.end()) label = found - class_names.begin();
  }
  std::map<std::string, std::int64_t> seen;
  std::vector<std::pair<std::int64_t, std::size_t>> turns;
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i].right = class_truth(number[first_folder(files[i])]);
    turns.emplace_back(seen[first_folder(files[i])]++, i);
  }
  std::sort(turns.begin(), turns.end());
  std::vector<PictureFile> ordered;
  for (const auto& turn : turns) ordered.push_back(std::move(files[turn.second]));
  files = std::move(ordered);
  return ok_status();
}

// Pictures that cannot be read go to `left_out`; an error where none is left.
Status leave_out_damaged(std::vector<PictureFile>& files, std::vector<std::string>& left_out) {
  Status first;
  const auto is_damaged = [&](const PictureFile& file) {
    const Status status = image::probe(file.path);
    if (status.ok()) return false;
    if (left_out.empty()) first = status;
    left_out.push_back(file.relative);
    return true;
  };
  files.erase(std::remove_if(files.begin(), files.end(), is_damaged), files.end());
  return files.empty() ? first : ok_status();
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

bool label_by_name(std::vector<PictureFile>& files, const std::vector<std::string>& class_names) {
  for (PictureFile& file : files) {
    const std::string name = fs::path(file.relative).filename().string();
    const auto label = class_names.empty() ? leading_number(name) : class_in_name(name, class_names);
    if (!label) return false;
    file.right = class_truth(*label);
  }
  return true;
}

class FolderStore : public SampleStore {
 public:
  std::string folder;
  std::vector<PictureFile> files;
  std::string truth_from;             // words; empty: nothing is known
  std::vector<std::string> left_out;  // pictures that cannot be read, by name

  std::int64_t size() const override { return static_cast<std::int64_t>(files.size()); }

  Status read(std::int64_t sample, const InputSpec& input, const Preprocess& preprocess,
              std::span<std::byte> target) const override {
    const std::string& path = files[static_cast<std::size_t>(sample)].path;
    // Grey inputs get what the decoder takes for brightness; all else comes as RGB (or with opacity).
    REEF_ASSIGN_OR_RETURN(const PictureLayout layout, picture_layout(input, preprocess.layout));
    REEF_ASSIGN_OR_RETURN(const image::Image picture, image::load(path, layout.channels));
    return store_picture(picture, preprocess, input, target).in(path);
  }

  bool has_truth() const override { return !truth_from.empty(); }
  Result<Truth> truth(std::int64_t sample) const override {
    REEF_REQUIRE(has_truth(),
                 "'{}' does not say what is right: put pictures into a sub-folder for each class, or give a "
                 "file of names and labels",
                 folder);
    return files[static_cast<std::size_t>(sample)].right;
  }
  bool holds_pictures() const override { return true; }
  Result<std::pair<int, int>> picture_size(std::int64_t sample) const override {
    REEF_ASSIGN_OR_RETURN(const image::Image picture, image::load(files[static_cast<std::size_t>(sample)].path, 1));
    return std::pair(picture.width, picture.height);
  }
  std::string describe() const override {
    constexpr std::size_t kMostNamed = 5;
    std::string text = fmt::format("pictures of {}{}", folder, truth_from.empty() ? "" : ", " + truth_from);
    if (left_out.empty()) return text;
    const std::size_t named = std::min(left_out.size(), kMostNamed);
    text += fmt::format("; {} left out as damaged: {}", left_out.size(),
                        fmt::join(left_out.begin(), left_out.begin() + static_cast<std::ptrdiff_t>(named), ", "));
    return left_out.size() > named ? text + fmt::format(" and {} more", left_out.size() - named) : text;
  }
  std::string name_of(std::int64_t sample) const override { return files[static_cast<std::size_t>(sample)].relative; }
};

Status label_all(const DatasetOptions& options, FolderStore& store) {
  std::vector<std::string> class_names;
  if (!options.labels.empty()) {
    REEF_ASSIGN_OR_RETURN(class_names, load_class_names(options.labels));
  }
  if (!options.truth.empty()) {
    REEF_ASSIGN_OR_RETURN(const auto map, load_label_map(options.truth, class_names));
    for (PictureFile& file : store.files) {
      auto found = map.find(file.relative);
      if (found == map.end()) found = map.find(fs::path(file.relative).filename().string());
      REEF_REQUIRE(found != map.end(), "'{}' has no label for '{}'", options.truth, file.relative);
      file.right = class_truth(found->second);
    }
    store.truth_from = "labels from " + options.truth;
    return ok_status();
  }
  const auto in_folder = [](const PictureFile& file) { return !first_folder(file).empty(); };
  if (std::all_of(store.files.begin(), store.files.end(), in_folder)) {
    REEF_RETURN_IF_ERROR(label_by_folder(store.files, class_names));
    store.truth_from = "classes by sub-folder";
    return ok_status();
  }
  std::error_code error;
  if (fs::exists(fs::path(store.files[0].path).replace_extension(".txt"), error)) {
    for (PictureFile& file : store.files) {
      REEF_ASSIGN_OR_RETURN(file.right, load_boxes(fs::path(file.path).replace_extension(".txt").string()));
    }
    store.truth_from = "boxes from .txt files beside the pictures";
  } else if (label_by_name(store.files, class_names)) {
    store.truth_from = class_names.empty() ? "classes by the number that names begin with"
                                           : "classes by the word that names begin with";
  }
  return ok_status();
}

}  // namespace

std::vector<std::string> dataset_files(const DatasetOptions& options) {
  std::vector<std::string> files = {options.path, options.truth, options.labels};
  std::error_code error;
  if (!fs::is_directory(options.path, error)) return files;
  const auto pictures = pictures_below(options.path);
  if (!pictures.ok()) return files;
  for (const PictureFile& file : *pictures) {
    files.push_back(file.path);
    files.push_back(fs::path(file.path).replace_extension(".txt").string());  // boxes, if there are such files
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
