#include "spec/data/table_file.h"

#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace tutti::spec {
namespace {

using ::testing::HasSubstr;

std::string Error(absl::string_view text) {
  return std::string(ReadTable(text, "MLTable").status().message());
}

TEST(TableFile, NamesFilesFoldersAndPatterns) {
  const auto paths = ReadTable(
      "$schema: https://azuremlschemas.azureedge.net/latest/MLTable.schema.json\n"
      "type: mltable\npaths:\n  - file: ./a.csv\n  - folder: wasbs://c@a.blob.core.windows.net/x\n"
      "  - pattern: ./part-[0-9].csv\ntransformations:\n  - read_delimited: {delimiter: ','}\n"
      "traits: {index_columns: [x]}\nmetadata: {owner: me}\nsomething_new: 1\n",
      "MLTable");
  ASSERT_TRUE(paths.ok()) << paths.status();
  ASSERT_EQ(paths->size(), 3U);
  EXPECT_EQ(paths->at(0).text, "./a.csv");
  EXPECT_EQ(paths->at(0).line, 4);
  EXPECT_EQ(paths->at(1).kind, TablePath::Kind::kFolder);
  EXPECT_EQ(paths->at(2).kind, TablePath::Kind::kPattern);
}

TEST(TableFile, SaysWhatIsWrongWithItsLine) {
  EXPECT_EQ(Error("type: mltable\n"),
            "MLTable:1: the key \"paths\", a list of what the table is of, is missing or empty");
  EXPECT_THAT(Error("paths: []\n"), HasSubstr("is missing or empty"));
  EXPECT_THAT(Error("paths: x\n"), HasSubstr("is missing or empty"));
  EXPECT_THAT(Error("paths:\n  - ./a.csv\n  - {file: a, folder: b}\n  - {dir: a}\n"),
              ::testing::AllOf(HasSubstr("MLTable:2: a path is written"), HasSubstr("MLTable:3: "),
                               HasSubstr("MLTable:4: ")));
  EXPECT_THAT(Error("paths:\n  - file:\n"), HasSubstr("file must be a path, but is nothing"));
  EXPECT_THAT(Error("paths:\n  - file: \"\"\n"), HasSubstr("file must be a path, but is empty"));
  EXPECT_THAT(Error("paths:\n  - folder: [a]\n"), HasSubstr("but is a list"));
  EXPECT_THAT(Error("type: uri_folder\npaths: [{file: a}]\n"), HasSubstr("must be mltable"));
  EXPECT_THAT(Error("query_source: {handler: x}\n"), HasSubstr("of a query"));
  EXPECT_THAT(Error("- file: a\n"), HasSubstr("must be a mapping, but is a list"));
}

TEST(TableFile, BoundsWhatItReads) {
  std::string many = "paths:\n";
  for (size_t i = 0; i <= kMostTablePaths; ++i) absl::StrAppend(&many, "  - file: f", i, "\n");
  EXPECT_THAT(Error(many), HasSubstr("has more than 100 paths"));
  EXPECT_THAT(Error(std::string(kLargestTableFile + 1, '#')), HasSubstr("is larger than 256 KiB"));
  EXPECT_THAT(Error("paths: &a\n  - file: *a\n"), HasSubstr("inside of its own anchor"));
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = absl::StrCat("*a", i - 1);
    absl::StrAppend(&laughs, "a", i, ": &a", i, " [");
    for (int j = 0; j < 9; ++j) absl::StrAppend(&laughs, j == 0 ? "" : ", ", before);
    absl::StrAppend(&laughs, "]\n");
  }
  EXPECT_THAT(Error(absl::StrCat(laughs, "paths: *a8\n")), HasSubstr("with aliases written out"));
}

}  // namespace
}  // namespace tutti::spec
