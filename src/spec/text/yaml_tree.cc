#include "spec/text/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text/utf8.h"

namespace tutti::spec {
namespace {

using Shared = std::shared_ptr<const YamlNode>;

constexpr char kMergeKey[] = "<<";
constexpr char kZeroByte[] = "a text contains a zero byte";
constexpr size_t kLongestKey = 1024;  // as YAML bounds it; a merge copies it

[[noreturn]] void Fail(int line, const std::string& message) {
  YAML::Mark mark;
  mark.line = line - 1;
  throw YAML::ParserException(mark, message);
}

// yaml-cpp 0.7 makes single bytes of the escapes \N and \_: those of Latin-1.
std::string AsUtf8(absl::string_view value) {
  std::string text;
  while (!value.empty()) {
    const size_t length = base::Utf8Length(value);
    absl::StrAppend(&text, length == 0 ? "\xC2" : "", value.substr(0, std::max<size_t>(length, 1)));
    value.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

// Builds the tree from yaml-cpp's events. An exception from a handler ends the parse, so limits
// hold before yaml-cpp recurses deeper. (YAML::Load would keep aliases shared as well, but loses
// the lines of keys and says nothing of keys that come twice.)
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const YamlLimits& limits) : limits_(limits) {}

  Shared root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Finish(New(YamlNode::Kind::kNull, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) Fail(mark.line + 1, "an alias stands inside of its own anchor");
    Place(found->second, mark.line + 1);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto node = New(YamlNode::Kind::kScalar, mark);
    if (value.find('\0') != std::string::npos) Fail(node->line, kZeroByte);
    node->quoted = tag == "!";
    node->scalar = AsUtf8(value);
    Finish(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Begin(YamlNode::Kind::kSequence, mark, anchor);
  }
  void OnSequenceEnd() override { End(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Begin(YamlNode::Kind::kMapping, mark, anchor);
  }
  void OnMapEnd() override {
    Merge(open_.back());
    End();
  }

 private:
  // A sequence or mapping whose end has not come yet.
  struct Open {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor;
    bool has_key = false;  // a mapping: its key has come, its value has not
    bool merges = false;   // a mapping: it has the key <<
    std::map<std::string, int> lines_of_keys;
  };

  std::shared_ptr<YamlNode> New(YamlNode::Kind kind, const YAML::Mark& mark) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = mark.line + 1;
    return node;
  }

  void Begin(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (open_.size() >= limits_.depth) {
      Fail(mark.line + 1, absl::StrCat("is nested deeper than ", limits_.depth, " levels"));
    }
    open_.push_back({.node = New(kind, mark), .anchor = anchor});
  }

  void End() {
    Open done = std::move(open_.back());
    open_.pop_back();
    Finish(std::move(done.node), done.anchor);
  }

  // From here on the node does not change.
  void Finish(Shared node, YAML::anchor_t anchor) {
    if (anchor != 0) anchored_[anchor] = node;
    const int line = node->line;
    Place(std::move(node), line);
  }

  void Place(Shared node, int line) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    parent.node->expanded_size += node->expanded_size;
    if (parent.node->expanded_size > limits_.nodes) {
      Fail(line,
           absl::StrCat("has more than ", limits_.nodes, " values, with aliases written out"));
    }
    if (parent.node->kind == YamlNode::Kind::kSequence) {
      parent.node->items.push_back(std::move(node));
    } else if (parent.has_key) {
      parent.node->entries.back().value = std::move(node);
      parent.has_key = false;
    } else {
      AddKey(parent, *node, line);
    }
  }

  void AddKey(Open& mapping, const YamlNode& key, int line) {
    if (key.kind != YamlNode::Kind::kScalar) {
      Fail(line, absl::StrCat("a key must be text, but is ", KindName(key)));
    }
    if (key.scalar.size() > kLongestKey) {
      Fail(line, absl::StrCat("a key has more than ", kLongestKey, " characters"));
    }
    const auto [first, is_new] = mapping.lines_of_keys.emplace(key.scalar, line);
    if (!is_new) {
      Fail(line, absl::StrCat("key \"", key.scalar.substr(0, 80), "\" is there already, in line ",
                              first->second));
    }
    mapping.node->entries.push_back({key.scalar, line, nullptr});
    mapping.has_key = true;
    mapping.merges |= key.scalar == kMergeKey && !key.quoted;
  }

  // In place of `<<: *base` or `<<: [*a, *b]` the entries of these that the mapping does not have;
  // the first to have a key gives it (yaml.org/type/merge.html). Their nodes are counted where the
  // key's value was placed.
  void Merge(Open& mapping) {
    if (!mapping.merges) return;
    std::vector<YamlNode::Entry>& entries = mapping.node->entries;
    const auto at = std::find_if(entries.begin(), entries.end(), [](const YamlNode::Entry& entry) {
      return entry.key == kMergeKey;
    });
    const YamlNode::Entry merge = *at;
    entries.erase(at);
    const bool is_list = merge.value->kind == YamlNode::Kind::kSequence;
    for (const Shared& base : is_list ? merge.value->items : std::vector<Shared>{merge.value}) {
      if (base->kind != YamlNode::Kind::kMapping) {
        Fail(merge.line, absl::StrCat("<< must name a mapping or a list of them, but is ",
                                      is_list ? "a list with " : "", KindName(*base)));
      }
      for (const YamlNode::Entry& entry : base->entries) {
        if (mapping.lines_of_keys.emplace(entry.key, entry.line).second) entries.push_back(entry);
      }
    }
  }

  const YamlLimits limits_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Shared> anchored_;
  Shared root_;
};

absl::Status ErrorAt(absl::string_view file_name, int line, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(file_name, ":", line, ": ", message));
}

// The line of the first byte that is not part of valid UTF-8; 0 if all is.
int LineOfBadUtf8(absl::string_view text) {
  int line = 1;
  while (!text.empty()) {
    const size_t length = base::Utf8Length(text);
    line += text.front() == '\n';
    if (length == 0) return line;
    text.remove_prefix(length);
  }
  return 0;
}

using Lines = std::vector<absl::string_view>;

absl::string_view IndentationOf(absl::string_view line) {
  return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

// The key of "key: value" or "key:"; or "".
absl::string_view KeyOf(absl::string_view line) {
  const absl::string_view rest = absl::StripAsciiWhitespace(line);
  const size_t colon = rest.find(':');
  const bool is_key =
      colon != absl::string_view::npos && (colon + 1 == rest.size() || rest[colon + 1] == ' ') &&
      std::all_of(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(colon),
                  [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-'; });
  return is_key ? rest.substr(0, colon) : "";
}

// Returns what stands behind the key, or behind the "-" of a list.
absl::string_view ValueOf(absl::string_view line) {
  absl::string_view rest = absl::StripAsciiWhitespace(line);
  while (absl::ConsumePrefix(&rest, "- ")) rest = absl::StripLeadingAsciiWhitespace(rest);
  if (const absl::string_view key = KeyOf(rest); !key.empty()) rest.remove_prefix(key.size() + 1);
  return absl::StripLeadingAsciiWhitespace(rest);
}

// A key that is deeper than the value-holding one before it.
bool IsTooDeep(const Lines& lines, size_t at) {
  if (KeyOf(lines[at]).empty()) return false;
  for (size_t i = at; i-- > 0;) {
    const absl::string_view before = absl::StripAsciiWhitespace(lines[i]);
    if (before.empty() || before[0] == '#') continue;
    return !absl::EndsWith(before, ":") &&
           IndentationOf(lines[at]).size() > IndentationOf(lines[i]).size();
  }
  return false;
}

// Suggests what to correct where a text cannot be read as YAML, in words that fit its line; the
// parser names only what it stumbled over. Returns `message` as it is if nothing is known of the
// line. `line`: the parser's, from 0.
std::string YamlHint(absl::string_view text, int line, absl::string_view message) {
  const Lines lines = absl::StrSplit(text, '\n');
  const size_t at = static_cast<size_t>(std::max(line, 0));
  if (at >= lines.size()) return std::string(message);
  if (absl::StrContains(IndentationOf(lines[at]), '\t')) {
    return "a tab indents the line; write spaces";
  }
  const absl::string_view value = ValueOf(lines[at]);
  for (const absl::string_view begin : {"{{", "%", "@", "`"}) {
    if (!absl::StartsWith(value, begin)) continue;
    return absl::StrCat("a text that begins with \"", begin, "\" needs quotes");
  }
  const bool misplaced = message == "illegal map value";
  if ((misplaced || message == "end of map not found") && IsTooDeep(lines, at)) {
    return absl::StrCat("key \"", KeyOf(lines[at]).substr(0, 80),
                        "\" is indented deeper than the line before it, which has its value "
                        "already; keys of one mapping stand in one column");
  }
  return misplaced ? "illegal map value: a text with \": \" in it needs quotes, or its own lines "
                     "after \"|\" or \">-\""
                   : std::string(message);
}

}  // namespace

const YamlNode::Entry* FindEntry(const YamlNode& node, absl::string_view key) {
  const auto found = std::find_if(node.entries.begin(), node.entries.end(),
                                  [&](const YamlNode::Entry& entry) { return entry.key == key; });
  return found == node.entries.end() ? nullptr : &*found;
}

const YamlNode::Entry* FindValue(const YamlNode& node, absl::string_view key) {
  const YamlNode::Entry* const entry = FindEntry(node, key);
  return entry == nullptr || entry->value->kind == YamlNode::Kind::kNull ? nullptr : entry;
}

Shared TextNode(absl::string_view text) {
  auto node = std::make_shared<YamlNode>();
  node->kind = YamlNode::Kind::kScalar;
  node->scalar = std::string(text);
  return node;
}

Shared MappingNode(std::vector<YamlNode::Entry> entries, int line) {
  auto node = std::make_shared<YamlNode>();
  node->kind = YamlNode::Kind::kMapping;
  node->line = line;
  node->entries = std::move(entries);
  return node;
}

absl::string_view KindName(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return "text";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMapping:
      return "a mapping";
  }
  return "";
}

absl::StatusOr<std::shared_ptr<const YamlNode>> ParseYaml(absl::string_view text,
                                                          absl::string_view file_name,
                                                          const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    return ErrorAt(file_name, 1, absl::StrCat("is larger than ", limits.bytes / 1024, " KiB"));
  }
  if (const int line = LineOfBadUtf8(text); line > 0) {
    return ErrorAt(file_name, line, "is not UTF-8 text");
  }
  if (const size_t zero = text.find('\0'); zero != absl::string_view::npos) {  // to yaml-cpp a \.
    const auto before = std::count(text.begin(), text.begin() + zero, '\n');
    return ErrorAt(file_name, static_cast<int>(before) + 1, kZeroByte);
  }
  // Without its last line end: yaml-cpp 0.7 takes a quoted text that is never closed as complete
  // if the file ends in one.
  std::istringstream stream{std::string(absl::StripTrailingAsciiWhitespace(text))};
  TreeBuilder builder(limits);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder) || builder.root() == nullptr) {
      return ErrorAt(file_name, 1, "is empty");
    }
    const Shared root = builder.root();
    if (parser.HandleNextDocument(builder)) {
      return ErrorAt(file_name, builder.root()->line, "holds more than one document");
    }
    return root;
  } catch (const YAML::Exception& error) {
    return ErrorAt(file_name, std::max(error.mark.line, 0) + 1,
                   YamlHint(text, error.mark.line, error.msg));
  } catch (const std::exception& error) {  // yaml-cpp's own limits and conversions
    return ErrorAt(file_name, 1, absl::StrCat("cannot be read as YAML: ", error.what()));
  }
}

}  // namespace tutti::spec
