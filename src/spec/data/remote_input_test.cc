#include "spec/data/remote_input.h"

#include <gtest/gtest.h>

namespace tutti::spec {
namespace {

TEST(RemoteInput, IsBehindHttpOrHttps) {
  EXPECT_TRUE(IsRemote({.path = "https://h/a.csv"}));
  EXPECT_TRUE(IsRemote({.path = "http://h/a.csv"}));
  EXPECT_FALSE(IsRemote({.path = "/data/https"}));
}

TEST(RemoteInput, FaultNamesTheCommandThatServesItFromACopyAndNoSecret) {
  const Input input = {.path = "https://a.blob.core.windows.net/c/d.csv?sig=secret"};
  const std::string fault = RemoteInputFault(input, absl::UnavailableError("no answer"));
  EXPECT_NE(fault.find(" cannot be had: no answer; copy it here and say where: tutti data map "),
            std::string::npos)
      << fault;
  EXPECT_EQ(fault.find("secret"), std::string::npos) << fault;
}

}  // namespace
}  // namespace tutti::spec
