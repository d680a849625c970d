#include "base/json_text.h"

template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;
template class nlohmann::detail::lexer<nlohmann::json, tutti::JsonCharacters>;
template class nlohmann::detail::lexer<nlohmann::json, tutti::JsonString>;
template class nlohmann::detail::parser<nlohmann::json, tutti::JsonCharacters>;
template class nlohmann::detail::parser<nlohmann::json, tutti::JsonString>;
template bool nlohmann::detail::parser<nlohmann::json, tutti::JsonCharacters>::sax_parse_internal(
    tutti::JsonTree*);
template bool nlohmann::detail::parser<nlohmann::json, tutti::JsonCharacters>::sax_parse_internal(
    tutti::JsonFilteredTree*);
template bool nlohmann::detail::parser<nlohmann::json, tutti::JsonString>::sax_parse_internal(
    tutti::JsonTree*);
template bool nlohmann::detail::parser<nlohmann::json, tutti::JsonString>::sax_parse_internal(
    tutti::JsonFilteredTree*);
