#include "spec/types/registry_secret.h"

#include <gtest/gtest.h>

#include <string>

#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

TEST(RegistrySecret, HasTheHostAndPortInItsName) {
  for (const char* host : {"ghcr.io", "10.0.0.5:5000", "my-acr.azurecr.io", "docker.io"}) {
    EXPECT_EQ(RegistryOfSecret(SecretOfRegistry(host)), host);
    EXPECT_FALSE(IsSecretName(SecretOfRegistry(host))) << "no job can name it: " << host;
  }
  for (const char* name : {"registry.", "registry./a", "registry.a/b", "registry.-a",
                           "registry.a b", "datastore.a", "registry", "hub"}) {
    EXPECT_EQ(RegistryOfSecret(name), "") << name;
  }
  EXPECT_EQ(RegistryOfSecret(SecretOfRegistry(std::string(128, 'a'))), "");
}

}  // namespace
}  // namespace tutti::spec
