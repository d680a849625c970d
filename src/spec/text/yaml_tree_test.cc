#include "spec/text/yaml_tree.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string TreeError(absl::string_view text) {
  return std::string(ParseYaml(text, "f.yml").status().message());
}

TEST(YamlTree, KeepsOrderAndLines) {
  const auto root = ParseYaml("a: 1\nb:\n  - x\n  - 'y'\n\nc: {d: }\n", "f.yml");
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_EQ((*root)->entries.size(), 3u);
  EXPECT_EQ((*root)->entries[1].key, "b");
  EXPECT_EQ((*root)->entries[1].line, 2);
  EXPECT_EQ((*root)->entries[1].value->items[1]->scalar, "y");
  EXPECT_EQ((*root)->entries[1].value->items[1]->line, 4);
  EXPECT_TRUE((*root)->entries[1].value->items[1]->quoted);
  EXPECT_EQ((*root)->entries[2].line, 6);
  EXPECT_EQ((*root)->entries[2].value->entries[0].value->kind, YamlNode::Kind::kNull);
}

TEST(YamlTree, BadYamlNamesTheLine) {
  EXPECT_THAT(TreeError("a: 1\nb: [1, 2\nc: 3\n"), StartsWith("f.yml:"));
  EXPECT_THAT(TreeError("a: 1\n\tb: 2\n"), StartsWith("f.yml:2: "));
  EXPECT_THAT(TreeError("a: 'x\n"), StartsWith("f.yml:"));
  EXPECT_THAT(TreeError("a: \"x\nb: 2\n\n"), StartsWith("f.yml:"));
  EXPECT_THAT(TreeError("a: 1\ncommand: echo x: y\n"),
              StartsWith("f.yml:2: illegal map value: a text with \": \" in it needs quotes"));
  EXPECT_EQ(TreeError(""), "f.yml:1: is empty");
  EXPECT_EQ(TreeError("# nothing\n"), "f.yml:1: is empty");
}

TEST(YamlTree, BadYamlIsToldByWhatIsWrongInItsLine) {
  for (const char* text : {"a: 1\nb:\n\tc: 1\n", "a: 1\nb:\n\t- c\n", "a: 1\nb: 2\n\tc: 3\n"}) {
    EXPECT_EQ(TreeError(text), "f.yml:3: a tab indents the line; write spaces") << text;
  }
  EXPECT_THAT(TreeError("a: echo\n b: 1\n"),
              StartsWith("f.yml:2: key \"b\" is indented deeper than the line before it"));
  EXPECT_THAT(TreeError("a:\n  b: 1\n\n  # c\n   d: 2\n"),
              StartsWith("f.yml:5: key \"d\" is indented deeper than the line before it"));
  EXPECT_EQ(TreeError("a: %x\n"), "f.yml:1: a text that begins with \"%\" needs quotes");
  EXPECT_EQ(TreeError("a: @x\n"), "f.yml:1: a text that begins with \"@\" needs quotes");
  EXPECT_EQ(TreeError("a:\n  - `x`\n"), "f.yml:2: a text that begins with \"`\" needs quotes");
  EXPECT_EQ(TreeError("a: {{b}}\n"), "f.yml:1: a text that begins with \"{{\" needs quotes");
}

TEST(YamlTree, AKeyThatComesTwiceIsAnError) {
  EXPECT_EQ(TreeError("a:\n  x: 1\n  y: 2\n  x: 3\n"),
            "f.yml:4: key \"x\" is there already, in line 2");
}

TEST(YamlTree, AnAliasStandsForItsAnchor) {
  const auto root = ParseYaml("a: &x [1, 2]\nb: *x\n", "f.yml");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ((*root)->entries[1].value->items[1]->scalar, "2");
}

TEST(YamlTree, AMergeKeyBringsTheEntriesThatAreNotThere) {
  const auto root = ParseYaml(
      "a: &a {x: 1, y: 2}\nb: &b\n  y: 3\n  z: 4\n"
      "one:\n  <<: *a\n  x: 9\nboth: &both {<<: [*b, *a], w: 0}\nall: {<<: *both}\n"
      "text: {'<<': *a}\n",
      "f.yml");
  ASSERT_TRUE(root.ok()) << root.status();
  const auto shown = [&](size_t i) {
    std::string text;
    for (const YamlNode::Entry& entry : (*root)->entries[i].value->entries) {
      absl::StrAppend(&text, entry.key, "=", entry.value->scalar, ":", entry.line, " ");
    }
    return text;
  };
  EXPECT_EQ(shown(2), "x=9:7 y=2:1 ");
  EXPECT_EQ(shown(3), "w=0:8 y=3:3 z=4:4 x=1:1 ");
  EXPECT_EQ(shown(4), "w=0:8 y=3:3 z=4:4 x=1:1 ");
  EXPECT_EQ(shown(5), "<<=:10 ");
  EXPECT_EQ(TreeError("a: &a 1\nb: {<<: *a}\n"),
            "f.yml:2: << must name a mapping or a list of them, but is text");
  EXPECT_EQ(TreeError("a: &a {x: 1}\nb:\n  <<: [*a, y]\n"),
            "f.yml:3: << must name a mapping or a list of them, but is a list with text");
}

TEST(YamlTree, MergesThatMultiplyAreStopped) {
  std::string text = "a: &a {";
  for (int i = 0; i < 200; ++i) absl::StrAppend(&text, "k", i, ": , ");
  text += "}\nb: [";
  for (int i = 0; i < 200; ++i) text += "{<<: *a}, ";
  EXPECT_THAT(TreeError(text + "]\n"), HasSubstr("more than 20000 values"));
  EXPECT_THAT(TreeError("? " + std::string(2000, 'k') + "\n: 1\n"),
              HasSubstr("a key has more than 1024 characters"));
}

TEST(YamlTree, AliasesThatMultiplyAreStopped) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&text, "a", i, ": &a", i, " [");
    for (int k = 0; k < 10; ++k) absl::StrAppend(&text, k > 0 ? "," : "", "*a", i - 1);
    absl::StrAppend(&text, "]\n");
  }
  EXPECT_THAT(TreeError(text), HasSubstr("more than 20000 values"));
  EXPECT_THAT(TreeError("a: &a [*a]\n"), HasSubstr("inside of its own anchor"));
}

TEST(YamlTree, DepthSizeAndEncodingAreBounded) {
  EXPECT_THAT(TreeError(std::string(100'000, '[')), HasSubstr("deeper than 32 levels"));
  EXPECT_THAT(TreeError(std::string(1 << 20, 'a')), HasSubstr("larger than 256 KiB"));
  EXPECT_EQ(TreeError("a: 1\nb: \xff\n"), "f.yml:2: is not UTF-8 text");
  EXPECT_EQ(TreeError("a: \xc3"), "f.yml:1: is not UTF-8 text");
  EXPECT_EQ(TreeError("a: \xed\xa0\x80"), "f.yml:1: is not UTF-8 text");
  EXPECT_TRUE(ParseYaml("a: \xc3\xa9 \xf0\x9f\x8e\xb6\n", "f.yml").ok());
  EXPECT_EQ(TreeError("a: \"x\\0\"\n"), "f.yml:1: a text contains a zero byte");
}

TEST(YamlTree, OneDocumentOnly) {
  EXPECT_EQ(TreeError("a: 1\n---\nb: 2\n"), "f.yml:3: holds more than one document");
}

TEST(YamlTree, KeysAreText) {
  EXPECT_THAT(TreeError("? [a]\n: 1\n"), HasSubstr("a key must be text, but is a list"));
}

TEST(YamlTree, EveryTextIsUtf8) {
  const auto root = ParseYaml("a: \"x\\_\\N\\xe9é\"\n", "job.yml");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ((*root)->entries[0].value->scalar, "x\u00a0\u0085éé");
  EXPECT_EQ(TreeError(std::string("a: x\nb: y\0_\n", 12)), "f.yml:2: a text contains a zero byte");
}

TEST(YamlTree, FindsEntriesByKeyAndThoseThatHaveAValue) {
  const auto root = ParseYaml("a: 1\nb:\n", "job.yml");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(FindEntry(**root, "a")->value->scalar, "1");
  EXPECT_EQ(FindValue(**root, "a"), FindEntry(**root, "a"));
  EXPECT_EQ(FindEntry(**root, "b")->line, 2);
  EXPECT_EQ(FindValue(**root, "b"), nullptr);
  EXPECT_EQ(FindEntry(**root, "c"), nullptr);
  EXPECT_EQ(FindEntry(*TextNode("a"), "a"), nullptr);
  EXPECT_EQ(FindEntry(*MappingNode({{"c", 3, TextNode("x")}}), "c")->value->scalar, "x");
}

}  // namespace
}  // namespace tutti::spec
