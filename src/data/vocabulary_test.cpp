// SPDX-License-Identifier: Apache-2.0
// Tokens as the tokenizers of BERT (transformers.BertTokenizer) and of TFLite's text classifiers give them.
#include "data/vocabulary.h"

#include <gtest/gtest.h>

#include "formats/zip/archive.h"

namespace reef::data {
namespace {

Vocabulary parsed(std::string_view text) {
  auto result = Vocabulary::parse(text);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return *result;
}

constexpr std::string_view kPieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\nfine\n,\n!\nfilm\n##s\ncafe\n字\n";

TEST(Vocabulary, CutsWordsIntoPieces) {
  const Vocabulary vocabulary = parsed(kPieces);
  EXPECT_TRUE(vocabulary.has_word_pieces());
  const Vocabulary::Tokens tokens = vocabulary.encode("Unaffable, FINE films!", 12);
  EXPECT_EQ(tokens.ids, (std::vector<std::int32_t>{2, 4, 5, 6, 8, 7, 10, 11, 9, 3, 0, 0}));
  EXPECT_EQ(tokens.used, 10);
}

TEST(Vocabulary, OnePieceUnknownMakesTheWordUnknown) {
  EXPECT_EQ(parsed(kPieces).encode("unfilm fine", 6).ids, (std::vector<std::int32_t>{2, 1, 7, 3, 0, 0}));
}

TEST(Vocabulary, TakesAccentsOffAndSingleCharactersApart) {
  EXPECT_EQ(parsed(kPieces).encode("Caf\xC3\xA9\xE5\xAD\x97!", 6).ids, (std::vector<std::int32_t>{2, 12, 13, 9, 3, 0}));
}

TEST(Vocabulary, CutsWhatIsTooLongAndKeepsTheEnd) {
  EXPECT_EQ(parsed(kPieces).encode("fine fine fine fine", 4).ids, (std::vector<std::int32_t>{2, 7, 7, 3}));
  EXPECT_TRUE(parsed(kPieces).encode("fine", 0).ids.empty());
}

TEST(Vocabulary, WordsWithNumbers) {
  const Vocabulary vocabulary = parsed("<PAD> 0\n<START> 1\n<UNKNOWN> 2\ndon't 7\nfilm 5\n");
  EXPECT_FALSE(vocabulary.has_word_pieces());
  EXPECT_EQ(vocabulary.encode("Don't... see the FILM", 6).ids, (std::vector<std::int32_t>{1, 7, 2, 2, 5, 0}));
}

TEST(Vocabulary, CapitalsCountWhereTheVocabularyHasThem) {
  EXPECT_EQ(parsed("[UNK]\nFilm\nfilm\n").encode("Film film FILM", 3).ids, (std::vector<std::int32_t>{1, 2, 0}));
}

TEST(Vocabulary, BrokenUtf8AndEmptyFilesDoNoHarm) {
  EXPECT_EQ(parsed(kPieces).encode("\xff\xc3", 3).ids, (std::vector<std::int32_t>{2, 1, 3}));
  EXPECT_FALSE(Vocabulary::parse("").ok());
  EXPECT_FALSE(Vocabulary::parse("one").ok());
}

TEST(Vocabulary, IsFoundInTheArchiveBehindAModel) {
  const std::vector<std::uint8_t> text(kPieces.begin(), kPieces.end());
  const std::vector<zip::NewMember> members = {{"labels.txt", text}, {"assets/vocab.txt", text}};
  const auto archive = zip::write_archive(members, true);
  ASSERT_TRUE(archive.ok());
  const auto found = Vocabulary::of_model_file(Bytes(*archive));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->size(), 14u);
  EXPECT_EQ(Vocabulary::of_model_file(Bytes(text)).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace reef::data
