// SPDX-License-Identifier: Apache-2.0
// Text as a model's numbers: a vocabulary, one token a line, and the two usual ways to cut text into its tokens.
//
//   word pieces  where the vocabulary has "[UNK]", as BERT's: words and single marks, each cut into the longest pieces
//                there are ("##ing" continues a word), between [CLS] and [SEP]
//   words        else, as TFLite's text classifiers have it: runs of letters, digits, _ and ', behind <START> if there
//   is
//                such a token; what is not known is <UNKNOWN>, or left out where there is no such token
//
// A vocabulary without capital letters is one of lower-case text. Letters of Latin-1, Greek and Cyrillic are
// lower-cased, accents of Latin-1 taken off, as BERT's uncased models do; other scripts stay as they are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::data {

class Vocabulary {
 public:
  // Lines "token", numbered from 0, or "token number" on every line.
  static Result<Vocabulary> parse(std::string_view text);
  static Result<Vocabulary> load(const std::string& path);
  // Reads the member whose name contains "vocab" from the archive that a TFLite file carries at its end (or from a
  // .task file). NotFound where there is none.
  static Result<Vocabulary> of_model_file(const Bytes& file);

  // Exactly `length` numbers: what is too long is cut, what is too short filled up. `used`: how many are not filling.
  struct Tokens {
    std::vector<std::int32_t> ids;
    std::int32_t used = 0;
  };
  Tokens encode(std::string_view text, std::int32_t length) const;

  std::size_t size() const { return ids_.size(); }
  bool has_word_pieces() const { return ids_.contains("[UNK]"); }

 private:
  void add_pieces(const std::string& word, std::vector<std::int32_t>& ids) const;
  // The number of the first of these tokens that there is; -1: none.
  std::int32_t find(std::initializer_list<std::string_view> tokens) const;

  std::map<std::string, std::int32_t, std::less<>> ids_;
  bool is_lower_case_ = true;
};

}  // namespace reef::data
