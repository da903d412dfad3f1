/*
 * Version and libraries.
 */
#include <alertscaler/runtime/version.h>

#include <curl/curl.h>
#include <event2/event.h>
#include <jansson.h>
#include <openssl/crypto.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <sqlite3.h>
#include <yaml.h>

#include <alertscaler/base/attr.h>

const char *as_version_get(void)
{
    return AS_VERSION;
}

size_t as_version_get_libraries(const struct as_library **libraries_out)
{
    static char pcre2[64];
    static struct as_library libraries[7];
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    libraries[0] = (struct as_library){"jansson", jansson_version_str()};
    libraries[1] = (struct as_library){"libcurl", curl_version_info(CURLVERSION_NOW)->version};
    libraries[2] = (struct as_library){"libevent", event_get_version()};
    libraries[3] = (struct as_library){"libyaml", yaml_get_version_string()};
    libraries[4] = (struct as_library){"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)};
    libraries[5] = (struct as_library){"pcre2", pcre2};
    libraries[6] = (struct as_library){"sqlite", sqlite3_libversion()};
    *libraries_out = libraries;
    return AS_ARRAY_SIZE(libraries);
}
