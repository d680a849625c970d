#include "http/identity.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "http/openssl.h"

namespace tutti::http {
namespace {

constexpr absl::Duration kSoon = absl::Hours(30 * 24);

absl::Status Failed(absl::string_view what) {
  return absl::InternalError(absl::StrCat("TLS: ", what, ": ", QueuedErrors()));
}

// Returns the text that `write` puts into a BIO.
template <class Write>
absl::StatusOr<std::string> TextOf(const Write& write) {
  const BioPtr bio(::BIO_new(::BIO_s_mem()));
  if (bio == nullptr || write(bio.get()) != 1) return Failed("cannot write PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<std::string> PemOf(X509* certificate) {
  return TextOf([&](BIO* bio) { return ::PEM_write_bio_X509(bio, certificate); });
}

bool Extend(X509* certificate, int extension, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  ::X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const ExtensionPtr made(::X509V3_EXT_conf_nid(nullptr, &context, extension, value.c_str()));
  return made != nullptr && ::X509_add_ext(certificate, made.get(), -1) == 1;
}

// Returns why the last certificate could not be read; "" if no other followed.
std::string Because() {
  const unsigned long code = ::ERR_peek_last_error();
  const bool over = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
  const std::string errors = QueuedErrors();
  return code == 0 || over ? "" : absl::StrCat(": ", errors);
}

std::string AlternativeNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    absl::StrAppend(&text, text.empty() ? "" : ",", IsNumericAddress(name) ? "IP:" : "DNS:", name);
  }
  return text;
}

bool NumberAtRandom(X509* certificate) {
  unsigned char bytes[16];
  if (::RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] &= 0x7f;  // positive
  BIGNUM* const number = ::BN_bin2bn(bytes, sizeof bytes, nullptr);
  const bool done = number != nullptr &&
                    ::BN_to_ASN1_INTEGER(number, ::X509_get_serialNumber(certificate)) != nullptr;
  ::BN_free(number);
  return done;
}

bool IsItsOwnIssuer(X509* certificate) {
  return ::X509_NAME_cmp(::X509_get_subject_name(certificate),
                         ::X509_get_issuer_name(certificate)) == 0;
}

}  // namespace

absl::StatusOr<std::string> Identity::MakeSelfSigned(const std::vector<std::string>& names) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("cannot make a key");
  const CertificatePtr certificate(::X509_new());
  X509* const x = certificate.get();
  if (x == nullptr) return Failed("cannot make a certificate");
  X509_NAME* const subject = ::X509_get_subject_name(x);
  const auto* const name = reinterpret_cast<const unsigned char*>("tutti");
  const bool made =
      ::X509_set_version(x, X509_VERSION_3) == 1 && NumberAtRandom(x) &&
      ::ASN1_TIME_set_string_X509(::X509_getm_notBefore(x), "20200101000000Z") == 1 &&
      ::ASN1_TIME_set_string_X509(::X509_getm_notAfter(x), "99991231235959Z") == 1 &&
      ::X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, name, -1, -1, 0) == 1 &&
      ::X509_set_issuer_name(x, subject) == 1 && ::X509_set_pubkey(x, key.get()) == 1 &&
      Extend(x, NID_basic_constraints, "critical,CA:FALSE") &&
      Extend(x, NID_key_usage, "critical,digitalSignature") &&
      Extend(x, NID_ext_key_usage, "serverAuth") && Extend(x, NID_subject_key_identifier, "hash") &&
      Extend(x, NID_subject_alt_name, AlternativeNames(names)) &&
      ::X509_sign(x, key.get(), ::EVP_sha256()) > 0;
  if (!made) return Failed("cannot make a certificate");
  TUTTI_ASSIGN_OR_RETURN(const std::string secret, TextOf([&](BIO* bio) {
                           return ::PEM_write_bio_PKCS8PrivateKey(bio, key.get(), nullptr, nullptr,
                                                                  0, nullptr, nullptr);
                         }));
  TUTTI_ASSIGN_OR_RETURN(const std::string shown, PemOf(x));
  return secret + shown;
}

absl::StatusOr<std::shared_ptr<const Identity>> Identity::FromPem(absl::string_view text) {
  ::ERR_clear_error();
  std::shared_ptr<Identity> identity(new Identity);
  identity->context_.reset(::SSL_CTX_new(::TLS_server_method()));
  SSL_CTX* const context = identity->context_.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
    return Failed("cannot begin");
  }
  ::SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  ::SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);

  const BioPtr certificates = BioOf(text);
  const CertificatePtr own = NextCertificate(certificates.get());
  if (own == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("no certificate in PEM form (BEGIN CERTIFICATE) in it", Because()));
  }
  if (::SSL_CTX_use_certificate(context, own.get()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("its certificate cannot be used: ", QueuedErrors()));
  }
  while (CertificatePtr issuer = NextCertificate(certificates.get())) {
    if (SSL_CTX_add0_chain_cert(context, issuer.get()) != 1) return Failed("certificates");
    (void)issuer.release();
  }
  if (const std::string why = Because(); !why.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("a certificate in it cannot be read", why));
  }
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  const BioPtr keys = BioOf(text);
  const KeyPtr key(::PEM_read_bio_PrivateKey(keys.get(), nullptr, no_passphrase, nullptr));
  if (key == nullptr) {
    return absl::InvalidArgumentError("no private key without a passphrase in PEM form in it");
  }
  if (::SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key is not the first certificate's: ", QueuedErrors()));
  }
  TUTTI_ASSIGN_OR_RETURN(identity->certificate_, PemOf(own.get()));
  return identity;
}

std::vector<std::string> Identity::Remarks(const std::string& address, absl::Time now) const {
  X509* const own = ::SSL_CTX_get0_certificate(context_.get());
  std::vector<std::string> remarks;
  tm end{};
  if (::ASN1_TIME_to_tm(::X509_get0_notAfter(own), &end) == 1) {
    const absl::Time last = absl::FromTM(end, absl::UTCTimeZone());
    const std::string day = absl::FormatTime("%Y-%m-%d", last, absl::UTCTimeZone());
    if (last < now) {
      remarks.push_back(absl::StrCat("has ended on ", day));
    } else if (last < now + kSoon) {
      remarks.push_back(absl::StrCat("ends on ", day));
    }
  }
  if (IsItsOwnIssuer(own) && ::X509_check_ip_asc(own, address.c_str(), 0) == 0) {
    remarks.push_back(absl::StrCat("is not for ", address));
  }
  return remarks;
}

bool IsSelfSigned(absl::string_view certificate) {
  const BioPtr text = BioOf(certificate);
  const CertificatePtr first = text == nullptr ? nullptr : NextCertificate(text.get());
  QueuedErrors();  // of what is none
  return first != nullptr && IsItsOwnIssuer(first.get());
}

}  // namespace tutti::http
