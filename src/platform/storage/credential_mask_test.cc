#include "platform/storage/credential_mask.h"

#include <gtest/gtest.h>

namespace tutti::storage {
namespace {

TEST(MaskOf, HidesEachSecretAndWhatAddressesHaveOfIt) {
  Credentials credentials;
  credentials.sas = "?sv=2021&sig=hush%2Fhush%3D";
  credentials.client_secret = "of+principal";
  credentials.tenant = "acme";
  const base::TextMask mask = MaskOf(credentials);
  EXPECT_EQ(mask.Hide("GET http://h/c?sig=hush%2Fhush%3D&sv=2021"),
            "GET http://h/c?sig=***&sv=2021");
  EXPECT_EQ(mask.Hide("the signature hush/hush= is wrong"), "the signature *** is wrong");
  EXPECT_EQ(mask.Hide("client_secret=of%2Bprincipal of acme"), "client_secret=*** of acme");
  EXPECT_EQ(MaskOf({}).Hide("nothing"), "nothing");
}

}  // namespace
}  // namespace tutti::storage
