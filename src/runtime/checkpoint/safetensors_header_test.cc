#include "runtime/checkpoint/safetensors_header.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tutti::checkpoint {
namespace {

std::string File(absl::string_view head, size_t data_bytes) {
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i) file[i] = static_cast<char>(uint64_t{head.size()} >> (8 * i));
  return absl::StrCat(file, head, std::string(data_bytes, 'x'));
}

// The error of a file with this head, before `data_bytes` of data.
std::string ErrorOf(absl::string_view head, size_t data_bytes) {
  const auto header = ParseSafetensorsHeader(File(head, data_bytes));
  if (header.ok()) return "accepted";
  EXPECT_EQ(header.status().code(), absl::StatusCode::kDataLoss);
  return std::string(header.status().message());
}

std::string Entry(absl::string_view name, absl::string_view shape, absl::string_view offsets) {
  return absl::StrCat("\"", name, R"(":{"dtype":"F32","shape":)", shape, R"(,"data_offsets":)",
                      offsets, "}");
}

TEST(SafetensorsHeader, ReadsAFileOfTheReferenceImplementation) {
  const std::string head =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I64","shape":[],"data_offsets":[24,32]},)"
      R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}  )";
  const auto header = ParseSafetensorsHeader(File(head, 32));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->data_begin, 8 + head.size());
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header->tensors[1].type, TensorType::kInt64);
  EXPECT_EQ(header->tensors[1].end, 32u);
}

TEST(SafetensorsHeader, ReadsWhatItWrites) {
  const std::vector<TensorRecord> records = {{"w", TensorType::kBFloat16, {4, 2}, 0, 16},
                                             {"empty", TensorType::kBool, {0, 5}, 16, 16}};
  const auto head = FormatSafetensorsHeader(records);
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->size() % 8, 0u);
  const auto header = ParseSafetensorsHeader(*head + std::string(16, 'x'));
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].name, "w");
  EXPECT_EQ(header->tensors[0].type, TensorType::kBFloat16);
  EXPECT_EQ(header->tensors[1].shape, (std::vector<int64_t>{0, 5}));
  EXPECT_FALSE(FormatSafetensorsHeader({{"\xff"}}).ok());
}

TEST(SafetensorsHeader, RefusesAFileCutShortAnywhere) {
  const std::string file = File("{" + Entry("a", "[2]", "[0,8]") + "}", 8);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseSafetensorsHeader(file.substr(0, size)).ok()) << size;
  }
  EXPECT_TRUE(ParseSafetensorsHeader(file).ok());
}

TEST(SafetensorsHeader, RefusesALengthBeyondItsBound) {
  std::string file = File("{}", 0);
  file[7] = '\x7f';
  EXPECT_EQ(ParseSafetensorsHeader(file).status().message(),
            "the head is said to have 9151314442816847874 bytes; at most 16777216 are read");
}

TEST(SafetensorsHeader, RefusesWhatIsNoSuchObject) {
  EXPECT_EQ(ErrorOf("[]", 0), "the head is not a JSON object");
  EXPECT_EQ(ErrorOf("{\"a\":", 0), "the head is not a JSON object");
  EXPECT_EQ(ErrorOf(std::string(1 << 20, '['), 0), "the head is nested too deeply");
  EXPECT_EQ(ErrorOf(R"({"a":{"shape":[[1]]}})", 0), "the head is nested too deeply");
  EXPECT_EQ(ErrorOf(R"({"a":1})", 0), "tensor \"a\": is not described by an object");
  EXPECT_EQ(ErrorOf(R"({"a":{}})", 0), "tensor \"a\": has no dtype");
  EXPECT_EQ(ErrorOf(R"({"a":{"dtype":"F31"}})", 0), "tensor \"a\": unknown dtype \"F31\"");
  EXPECT_EQ(ErrorOf("{" + Entry("a", "[-1]", "[0,4]") + "}", 4), "tensor \"a\": shape holds -1");
  EXPECT_EQ(ErrorOf("{" + Entry("a", "[1.5]", "[0,4]") + "}", 4), "tensor \"a\": shape holds 1.5");
  EXPECT_EQ(ErrorOf("{" + Entry("a", "7", "[0,4]") + "}", 4),
            "tensor \"a\": has no shape of at most 16 numbers");
  EXPECT_EQ(ErrorOf("{" + Entry("a", "[1]", "[4]") + "}", 4), "tensor \"a\": bad data_offsets");
}

TEST(SafetensorsHeader, RefusesOffsetsThatDoNotCoverTheData) {
  const auto two = [](absl::string_view first, absl::string_view second) {
    return absl::StrCat("{", Entry("a", "[2]", first), ",", Entry("b", "[2]", second), "}");
  };
  EXPECT_EQ(ErrorOf(two("[0,8]", "[8,16]"), 16), "accepted");
  EXPECT_EQ(ErrorOf(two("[0,8]", "[4,12]"), 12), "tensor \"b\": overlaps the one before it");
  EXPECT_EQ(ErrorOf(two("[0,8]", "[0,8]"), 8), "tensor \"b\": overlaps the one before it");
  EXPECT_EQ(ErrorOf(two("[0,8]", "[12,20]"), 20), "tensor \"b\": leaves a hole before it");
  EXPECT_EQ(ErrorOf(two("[0,8]", "[8,16]"), 17), "the file has 1 bytes more than its tensors");
  EXPECT_EQ(ErrorOf(two("[0,8]", "[8,16]"), 15),
            "tensor \"b\": its bytes 8 to 16 lie outside of the file, which holds 15");
  EXPECT_EQ(ErrorOf(two("[8,0]", "[8,16]"), 16), "tensor \"a\": bad data_offsets");
  EXPECT_EQ(ErrorOf("{" + Entry("a", "[3]", "[0,8]") + "}", 8),
            "tensor \"a\": has 8 bytes, but its shape and dtype need 12");
}

TEST(SafetensorsHeader, RefusesShapesThatOverflow) {
  for (const char* shape : {"[4611686018427387904,4]", "[0,4611686018427387904,4]",
                            "[9223372036854775807]", "[18446744073709551615]"}) {
    EXPECT_NE(ErrorOf("{" + Entry("a", shape, "[0,0]") + "}", 0), "accepted") << shape;
  }
}

TEST(SafetensorsHeader, RefusesANameThatIsThereTwice) {
  EXPECT_EQ(ErrorOf("{" + Entry("a", "[0]", "[0,0]") + "," + Entry("a", "[1]", "[0,4]") + "}", 4),
            "tensor \"a\": is there twice");
}

}  // namespace
}  // namespace tutti::checkpoint
