// SPDX-License-Identifier: Apache-2.0
// Samples in tar archives, as WebDataset has them: members that follow each other and have the same name up to the
// first dot are one sample, and what comes behind the dot says what they are: "000123.jpg" and "000123.cls".
//
// What a model is given: a picture (.jpg, .png, ...), an array (.npy); --array names the ending. What is right: .cls,
// .label, .json with "label", .txt, or an array beside a picture; --truth names the ending. An archive without any of
// these whose pictures lie in folders has a class for each folder.
#include <algorithm>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "data/array_sample.h"
#include "data/dataset.h"
#include "data/input_names.h"
#include "data/labels.h"
#include "data/shard_files.h"
#include "data/values.h"
#include "formats/image/image.h"
#include "formats/tar/tar.h"

namespace reef::data {
namespace {

constexpr std::uint64_t kMostTextBytes = 1 << 24;
constexpr std::string_view kTruthEndings[] = {"cls", "label", "cls.txt", "label.txt", "id", "json", "txt"};
constexpr std::string_view kTruthArrays[] = {"target.npy", "label.npy", "mask.npy", "labels.npy", "truth.npy"};

struct TarPart {
  std::string ending;  // behind the first dot, in small letters
  std::size_t shard = 0;
  tar::Member member;
};
struct Group {
  std::string key;
  std::vector<TarPart> parts;

  const TarPart* find(std::string_view ending) const {
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const TarPart& p) { return p.ending == ending; });
    return found == parts.end() ? nullptr : &*found;
  }
};

bool is_array(const TarPart& part) { return part.ending == "npy" || part.ending.ends_with(".npy"); }
bool is_picture(const TarPart& part) { return is_picture_name("." + part.ending); }

// "a/b/000123.seg.png": key "a/b/000123", ending "seg.png".
std::pair<std::string, std::string> split_name(const std::string& name) {
  const std::size_t base = name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), lower(name.substr(dot + 1))};
}

class TarStore : public SampleStore {
 public:
  static Result<std::unique_ptr<SampleStore>> open(const DatasetOptions& options, const std::vector<std::string>& files,
                                                   const ir::Model* model) {
    auto store = std::make_unique<TarStore>();
    store->path_ = options.path;
    for (const std::string& file : files) REEF_RETURN_IF_ERROR(store->add(file, options.budget));
    REEF_REQUIRE(!store->groups_.empty(), "'{}' holds no samples: the archive has no files", options.path);
    REEF_RETURN_IF_ERROR(store->choose_inputs(options, model));
    REEF_RETURN_IF_ERROR(store->choose_truth(options));
    return std::unique_ptr<SampleStore>(std::move(store));
  }

  std::int64_t size() const override { return std::ssize(groups_); }

  Result<StoredSample> stored(std::int64_t sample, const InputSpec& input) const override {
    const Group& from = group(sample);
    const TarPart* const part = input_of(from, static_cast<std::size_t>(input.index));
    REEF_REQUIRE(part != nullptr, "'{}', sample '{}': it has no {}; it has {}", path_, from.key,
                 endings_.empty() ? "picture and no array" : "." + endings_[at(input.index)], list_of(from));
    if (is_array(*part)) {
      REEF_ASSIGN_OR_RETURN(numpy::Array row, array_of(*part));
      row.shape.insert(row.shape.begin(), 1);
      return StoredSample{{}, std::move(row)};
    }
    REEF_ASSIGN_OR_RETURN(Bytes file, content(*part, image::kMaxFileBytes));
    REEF_REQUIRE(!file.empty(), "'{}', member '{}' is empty", path_, part->member.name);
    return StoredSample{std::move(file), {}};
  }

  bool has_truth() const override { return !truth_ending_.empty() || !labels_.empty(); }
  Result<Truth> truth(std::int64_t sample) const override {
    if (!labels_.empty()) return labels_[at(sample)];
    const Group& from = group(sample);
    REEF_REQUIRE(has_truth(), "'{}' does not say what is right: samples have no .cls and no .json; they have {}", path_,
                 list_of(from));
    const TarPart* const part = from.find(truth_ending_);
    REEF_REQUIRE(part != nullptr, "'{}', sample '{}': it has no .{}; it has {}", path_, from.key, truth_ending_,
                 list_of(from));
    auto result = read_part(*part);
    if (!result.ok()) return result.status().in(fmt::format("'{}', member '{}'", path_, part->member.name));
    return result;
  }

  bool holds_pictures() const override {
    const TarPart* const part = input_of(groups_[0], 0);
    return part != nullptr && !is_array(*part);
  }
  std::string describe() const override {
    std::string text =
        files_.size() == 1 ? fmt::format("{}", path_) : fmt::format("{} tar archives of {}", files_.size(), path_);
    text += fmt::format(", inputs {}", endings_.empty() ? "the first picture or array"
                                                        : fmt::format(".{}", fmt::join(endings_, ", .")));
    if (!truth_ending_.empty()) text += fmt::format(", labels from .{}", truth_ending_);
    if (!folders_.empty()) text += ", classes by folder";
    if (!open_ended_.empty())
      text += fmt::format("; {} without an end mark, perhaps cut off: {}", open_ended_.size(), open_ended_[0]);
    return text;
  }
  std::string name_of(std::int64_t sample) const override { return group(sample).key; }
  std::string place_of(std::int64_t sample, const InputSpec& /*input*/) const override {
    const Group& from = group(sample);
    return fmt::format("'{}', sample '{}'", files_[from.parts[0].shard]->path(), from.key);
  }
  std::vector<FilePiece> pieces_of(std::int64_t sample) const override {
    std::vector<FilePiece> pieces;
    for (const TarPart& part : group(sample).parts)
      pieces.push_back({files_[part.shard]->path(), part.member.name, part.member.at, part.member.bytes});
    return pieces;
  }
  std::map<std::int64_t, std::string> class_names() const override { return folders_; }

 private:
  const Group& group(std::int64_t sample) const { return groups_[at(sample)]; }

  static std::string list_of(const Group& group) {
    std::vector<std::string> endings;
    for (const TarPart& part : group.parts) endings.push_back("." + part.ending);
    return fmt::format("{}", fmt::join(endings, ", "));
  }

  Status add(const std::string& path, const Budget& budget) {
    REEF_ASSIGN_OR_RETURN(const auto file, open_shard(path, budget, memory_));
    REEF_ASSIGN_OR_RETURN(const tar::Index index, tar::read_index(*file, budget));
    if (!index.has_end) open_ended_.push_back(path);
    const std::size_t shard = files_.size();
    files_.push_back(file);
    bool is_first = true;
    for (const tar::Member& member : index.members) {
      auto [key, ending] = split_name(member.name);
      const std::string base = key.substr(key.rfind('/') + 1);
      if (base.empty() || base.starts_with("__") || ending.empty())
        continue;  // hidden files, READMEs, WebDataset's meta data
      if (is_first || groups_.back().key != key) groups_.push_back({key, {}});
      is_first = false;
      REEF_REQUIRE(groups_.back().find(ending) == nullptr, "'{}': member '{}' is there twice in its sample", path,
                   member.name);
      groups_.back().parts.push_back({ending, shard, member});
    }
    return ok_status();
  }

  const TarPart* input_of(const Group& from, std::size_t input) const {
    if (!endings_.empty()) return input < endings_.size() ? from.find(endings_[input]) : nullptr;
    const auto first = [&](auto&& is_it) -> const TarPart* {
      const auto found = std::find_if(from.parts.begin(), from.parts.end(), is_it);
      return found == from.parts.end() ? nullptr : &*found;
    };
    const TarPart* const picture = first(is_picture);
    return picture != nullptr ? picture : first(is_array);
  }

  Status choose_inputs(const DatasetOptions& options, const ir::Model* model) {
    REEF_ASSIGN_OR_RETURN(endings_, named_inputs(options, model));
    for (std::string& ending : endings_) {
      if (ending.starts_with('.')) ending.erase(0, 1);
      ending = lower(ending);
    }
    const Group& first = groups_[0];
    if (endings_.empty() && input_count(model) > 1) REEF_RETURN_IF_ERROR(find_inputs_by_name(first, *model));
    REEF_REQUIRE(input_of(first, 0) != nullptr,
                 "'{}': sample '{}' has neither a picture nor an array (.npy); it has {}. Name what the model is given "
                 "with --array",
                 path_, first.key, list_of(first));
    return ok_status();
  }

  // Several inputs: "000123.left.npy" feeds input "left".
  Status find_inputs_by_name(const Group& first, const ir::Model& model) {
    for (std::size_t i = 0; i < input_count(&model); ++i) {
      const std::vector<std::string> names = input_names(&model, i);
      const auto is_it = [&](const TarPart& part) {
        const std::string stem = part.ending.substr(0, part.ending.find('.'));
        return (is_array(part) || is_picture(part)) && std::find(names.begin(), names.end(), stem) != names.end();
      };
      const auto part = std::find_if(first.parts.begin(), first.parts.end(), is_it);
      REEF_REQUIRE(part != first.parts.end(),
                   "'{}': no member of sample '{}' is called as input '{}'; name one for each input with --array: {}",
                   path_, first.key, input_spec(model, static_cast<int>(i)).name, list_of(first));
      endings_.push_back(part->ending);
    }
    return ok_status();
  }

  Status choose_truth(const DatasetOptions& options) {
    if (!options.labels.empty()) {
      REEF_ASSIGN_OR_RETURN(class_names_, load_class_names(options.labels));
    }
    const Group& first = groups_[0];
    std::string wanted = lower(options.truth);
    if (wanted.starts_with('.')) wanted.erase(0, 1);
    if (!wanted.empty() && first.find(wanted) != nullptr) {
      truth_ending_ = wanted;
      return ok_status();
    }
    if (!wanted.empty()) return label_groups(options.truth);
    for (const std::string_view ending : kTruthEndings) {
      if (truth_ending_.empty() && first.find(ending) != nullptr && first.find(ending) != input_of(first, 0))
        truth_ending_ = ending;
    }
    for (const std::string_view ending : kTruthArrays) {
      if (truth_ending_.empty() && first.find(ending) != nullptr && first.find(ending) != input_of(first, 0))
        truth_ending_ = ending;
    }
    const auto in_folder = [](const Group& group) { return !first_folder(group.key).empty(); };
    if (truth_ending_.empty() && holds_pictures() && std::all_of(groups_.begin(), groups_.end(), in_folder))
      return label_groups("");
    return ok_status();
  }

  // By a file of names and labels, or by folder; groups are put into the order that results.
  Status label_groups(const std::string& file) {
    std::vector<NamedPicture> pictures;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const TarPart* const part = input_of(groups_[i], 0);
      pictures.push_back({part == nullptr ? groups_[i].key : part->member.name, i, {}});
    }
    if (file.empty()) {
      REEF_ASSIGN_OR_RETURN(folders_, label_by_folder(pictures, class_names_));
    } else {
      REEF_RETURN_IF_ERROR(label_by_file(file, pictures, class_names_));
    }
    std::vector<Group> ordered;
    for (NamedPicture& picture : pictures) {
      ordered.push_back(std::move(groups_[picture.place]));
      labels_.push_back(std::move(picture.right));
    }
    groups_ = std::move(ordered);
    return ok_status();
  }

  Result<Bytes> content(const TarPart& part, std::uint64_t most) const {
    REEF_REQUIRE(part.member.bytes <= most, "'{}', member '{}' has {} bytes; the most is {}", path_, part.member.name,
                 part.member.bytes, most);
    return files_[part.shard]->read(part.member.at, part.member.bytes);
  }

  Result<numpy::Array> array_of(const TarPart& part) const {
    REEF_ASSIGN_OR_RETURN(const Bytes file, content(part, std::uint64_t{1} << 32));
    auto array = numpy::read_npy(file);
    if (!array.ok()) return array.status().in(fmt::format("'{}', member '{}'", path_, part.member.name));
    return array;
  }

  Result<Truth> read_part(const TarPart& part) const {
    if (is_array(part)) {
      REEF_ASSIGN_OR_RETURN(const numpy::Array array, array_of(part));
      Truth result{array.type, array.shape, {}};
      REEF_ASSIGN_OR_RETURN(result.values, array_values(array, 0, array.elements()));
      if (result.shape == std::vector<std::int64_t>{1}) result.shape.clear();
      return result;
    }
    REEF_REQUIRE(!is_picture(part), "pictures as truth are not read from archives; use .npy");
    REEF_ASSIGN_OR_RETURN(const Bytes bytes, content(part, kMostTextBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (part.ending != "json" && !part.ending.ends_with(".json")) return read_truth(text, class_names_, "its text");
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    REEF_REQUIRE(!json.is_discarded(), "it is no JSON");
    const nlohmann::json* label = &json;
    for (const char* name : {"label", "class", "cls", "target", "class_id", "category_id"}) {
      if (label == &json && json.is_object() && json.contains(name)) label = &json[name];
    }
    if (label->is_number_integer()) return class_truth(label->get<std::int64_t>());
    REEF_REQUIRE(label->is_string(), "it has no number or name as \"label\", \"class\" or \"cls\"");
    return read_truth(label->get<std::string>(), class_names_, "its label");
  }

  std::string path_;
  std::vector<std::shared_ptr<const RandomFile>> files_;
  std::vector<Group> groups_;
  std::vector<std::string> endings_;  // one for each input; empty: the first picture or array
  std::string truth_ending_;          // empty: none, or labels_
  std::vector<Truth> labels_;         // one for each group, if they come from elsewhere
  std::map<std::int64_t, std::string> folders_;
  std::vector<std::string> class_names_;
  std::vector<std::string> open_ended_;
  BudgetedBytes memory_;  // of unpacked archives
};

}  // namespace

Result<std::unique_ptr<SampleStore>> open_tars(const DatasetOptions& options, const std::vector<std::string>& files,
                                               const ir::Model* model) {
  return TarStore::open(options, files, model);
}

}  // namespace reef::data
