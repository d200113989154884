// SPDX-License-Identifier: Apache-2.0
#include "data/vocabulary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "base/file.h"
#include "formats/zip/archive.h"

namespace reef::data {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 26;
constexpr std::size_t kMostPieceBytes = 200;  // longer words are unknown, as BERT's tokenizer has it

// One character of UTF-8 at `at`, which moves behind it; broken bytes are taken one by one.
char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80 ? 1 : first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  char32_t character = length == 1 ? first : first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) {
      ++at;
      return first;
    }
    character = character << 6 | (byte(at + i) & 0x3fu);
  }
  at += length;
  return character;
}

void append(char32_t character, std::string& text) {
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xc0 | character >> 6);
    text += static_cast<char>(0x80 | (character & 0x3f));
  } else if (character < 0x10000) {
    text += static_cast<char>(0xe0 | character >> 12);
    text += static_cast<char>(0x80 | (character >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (character & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | (character >> 18 & 7));
    text += static_cast<char>(0x80 | (character >> 12 & 0x3f));
    text += static_cast<char>(0x80 | (character >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (character & 0x3f));
  }
}

bool is_between(char32_t character, char32_t first, char32_t last) { return character >= first && character <= last; }

char32_t lower(char32_t c) {
  if (is_between(c, 'A', 'Z')) return c + 32;
  if (is_between(c, 0xc0, 0xde) && c != 0xd7) return c + 32;                      // Latin-1
  if (is_between(c, 0x391, 0x3a9) || is_between(c, 0x410, 0x42f)) return c + 32;  // Greek, Cyrillic
  if (is_between(c, 0x400, 0x40f)) return c + 80;
  return c;
}

// Letters of Latin-1 without their accents.
char32_t without_accent(char32_t c) {
  static constexpr std::array<char, 32> kLetters = {'a', 'a', 'a', 'a', 'a', 'a', 0,   'c', 'e', 'e', 'e',
                                                    'e', 'i', 'i', 'i', 'i', 0,   'n', 'o', 'o', 'o', 'o',
                                                    'o', 0,   0,   'u', 'u', 'u', 'u', 'y', 0,   'y'};
  if (!is_between(c, 0xe0, 0xff)) return c;
  const char plain = kLetters[c - 0xe0];
  return plain == 0 ? c : static_cast<char32_t>(plain);
}

bool is_space(char32_t c) {
  return c <= ' ' || c == 0x7f || c == 0xa0 || c == 0xad || is_between(c, 0x2000, 0x200f) || c == 0x3000 || c == 0xfeff;
}
bool is_letter_or_digit(char32_t c) {
  return is_between(c, '0', '9') || is_between(c, 'a', 'z') || is_between(c, 'A', 'Z') || c == '_';
}
bool is_mark(char32_t c) {
  if (c < 0x80) return !is_space(c) && (!is_letter_or_digit(c) || c == '_');
  return is_between(c, 0x2010, 0x2027) || is_between(c, 0x2030, 0x205e) || is_between(c, 0x3001, 0x3011) || c == 0xa1 ||
         c == 0xa7 || c == 0xab || c == 0xb6 || c == 0xb7 || c == 0xbb || c == 0xbf || is_between(c, 0xff01, 0xff0f);
}
// Scripts without spaces between words: each character is a word.
bool stands_alone(char32_t c) {
  return is_between(c, 0x3400, 0x4dbf) || is_between(c, 0x4e00, 0x9fff) || is_between(c, 0xf900, 0xfaff) ||
         is_between(c, 0x20000, 0x2fa1f);
}

// Words, and for word pieces also marks, each by itself.
std::vector<std::string> words_of(std::string_view text, bool is_lower_case, bool with_marks) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    char32_t c = next_character(text, at);
    if (is_lower_case) c = with_marks ? without_accent(lower(c)) : lower(c);
    const bool belongs = with_marks ? !is_mark(c) : is_letter_or_digit(c) || c == '\'' || (c >= 0x80 && !is_mark(c));
    if (is_space(c) || !belongs || (with_marks && stands_alone(c))) end_word();
    if (is_space(c)) continue;
    if (with_marks && (!belongs || stands_alone(c))) {
      append(c, word);
      end_word();
    } else if (belongs) {
      append(c, word);
    }
  }
  end_word();
  return words;
}

}  // namespace

Result<Vocabulary> Vocabulary::parse(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  // "token number" on every line.
  std::vector<std::int32_t> numbers;
  for (const std::string& line : lines) {
    const std::size_t split = line.find_last_of(" \t");
    std::int32_t number = 0;
    if (split == std::string::npos || split == 0) break;
    const auto [end, error] = std::from_chars(line.data() + split + 1, line.data() + line.size(), number);
    if (error != std::errc() || end != line.data() + line.size() || number < 0) break;
    numbers.push_back(number);
  }
  const bool has_numbers = !lines.empty() && numbers.size() == lines.size();
  Vocabulary result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string token = has_numbers ? lines[i].substr(0, lines[i].find_last_of(" \t")) : lines[i];
    if (token.empty() && i + 1 == lines.size()) break;
    const bool is_special = token.starts_with('[') || token.starts_with('<');
    if (!is_special && std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
      result.is_lower_case_ = false;
    }
    result.ids_.emplace(std::move(token), has_numbers ? numbers[i] : static_cast<std::int32_t>(i));
  }
  REEF_REQUIRE(result.ids_.size() > 1, "it has {} tokens; a vocabulary has one token a line", result.ids_.size());
  return result;
}

Result<Vocabulary> Vocabulary::load(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMaxFileBytes));
  auto parsed = parse({reinterpret_cast<const char*>(file.data()), file.size()});
  if (!parsed.ok()) return parsed.status().in(path);
  return parsed;
}

Result<Vocabulary> Vocabulary::of_model_file(const Bytes& file) {
  const auto archive = zip::Archive::open(file);
  if (archive.ok()) {
    for (const zip::Member& member : archive->members()) {
      const std::size_t folder = member.name.find_last_of('/');
      const std::string name = folder == std::string::npos ? member.name : member.name.substr(folder + 1);
      if (name.find("vocab") == std::string::npos || member.bytes > kMaxFileBytes) continue;
      REEF_ASSIGN_OR_RETURN(const Bytes text, archive->read(member));
      auto parsed = parse({reinterpret_cast<const char*>(text.data()), text.size()});
      if (!parsed.ok()) return parsed.status().in(member.name);
      return parsed;
    }
  }
  return make_error(StatusCode::kNotFound, "the file carries no vocabulary; give one with --vocabulary");
}

std::int32_t Vocabulary::find(std::initializer_list<std::string_view> tokens) const {
  for (const std::string_view token : tokens) {
    const auto found = ids_.find(token);
    if (found != ids_.end()) return found->second;
  }
  return -1;
}

void Vocabulary::add_pieces(const std::string& word, std::vector<std::int32_t>& ids) const {
  std::vector<std::int32_t> pieces;
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t end = word.size();
    std::int32_t id = -1;
    for (; end > begin && word.size() <= kMostPieceBytes; --end) {
      const std::string piece = (begin > 0 ? "##" : "") + word.substr(begin, end - begin);
      if (id = find({piece}); id >= 0) break;
    }
    if (id < 0) {  // one piece is not known: the word is not
      ids.push_back(find({"[UNK]"}));
      return;
    }
    pieces.push_back(id);
    begin = end;
  }
  ids.insert(ids.end(), pieces.begin(), pieces.end());
}

Vocabulary::Tokens Vocabulary::encode(std::string_view text, std::int32_t length) const {
  const bool by_pieces = has_word_pieces();
  std::vector<std::int32_t> ids;
  const std::int32_t first = by_pieces ? find({"[CLS]"}) : find({"<START>"});
  const std::int32_t last = by_pieces ? find({"[SEP]"}) : -1;
  const std::int32_t unknown = find({"<UNKNOWN>", "<UNK>", "<unk>", "<OOV>"});
  if (first >= 0) ids.push_back(first);
  for (const std::string& word : words_of(text, is_lower_case_, by_pieces)) {
    if (by_pieces) {
      add_pieces(word, ids);
    } else if (const std::int32_t id = find({word}); id >= 0 || unknown >= 0) {
      ids.push_back(id >= 0 ? id : unknown);
    }
  }
  const std::int32_t room = std::max(0, length - (last >= 0 ? 1 : 0));
  if (static_cast<std::int32_t>(ids.size()) > room) ids.resize(static_cast<std::size_t>(room));
  if (last >= 0 && length > 0) ids.push_back(last);
  Tokens tokens{std::move(ids), 0};
  tokens.used = static_cast<std::int32_t>(tokens.ids.size());
  tokens.ids.resize(static_cast<std::size_t>(std::max(0, length)), std::max(0, find({"[PAD]", "<PAD>", "<pad>"})));
  return tokens;
}

}  // namespace reef::data
