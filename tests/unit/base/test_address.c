/*
 * Ranges of addresses, and the peers in them.
 */
#include <criterion/criterion.h>

#include <alertscaler/base/address.h>
#include <alertscaler/base/attr.h>

Test(address, ranges_have_the_addresses_with_their_prefix)
{
    static const struct {
        const char *range, *remote;
        bool is_in;
    } rows[] = {
        {"10.0.0.0/8", "10.255.255.255:1", true},
        {"10.0.0.0/8", "11.0.0.0:1", false},
        {"10.1.128.0/17", "10.1.128.0:1", true},
        {"10.1.128.0/17", "10.1.127.255:1", false},
        {"192.0.2.7", "192.0.2.7:65535", true},
        {"192.0.2.7", "192.0.2.6:1", false},
        {"0.0.0.0/0", "192.0.2.6:1", true},
        {"0.0.0.0/0", "[2001:db8::1]:1", false},
        {"::/0", "192.0.2.6:1", true},
        {"2001:db8::/32", "[2001:db8:ffff::1]:1", true},
        {"2001:db8::/32", "[2001:db9::1]:1", false},
        {"fe80::/10", "[fe80::1%eth0]:1", true},
        {"192.0.2.0/24", "[::ffff:192.0.2.9]:1", true},
        {"::ffff:192.0.2.0/120", "192.0.2.9:1", true},
        {"192.0.2.0/24", "", false},
        {"192.0.2.0/24", "unix", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_address_range range;
        cr_assert(as_address_range_parse(rows[i].range, &range), "%s", rows[i].range);
        cr_expect_eq(as_address_range_has(&range, rows[i].remote), rows[i].is_in, "%s %s",
                     rows[i].range, rows[i].remote);
    }
}

Test(address, what_is_no_range_is_refused)
{
    static const char *const texts[] = {"",
                                        "10.0.0.0/33",
                                        "10.0.0.1/8",
                                        "10.0.0/8",
                                        "10.0.0.0/",
                                        "10.0.0.0/-1",
                                        "::1/129",
                                        "2001:db8::1/32",
                                        "example.com",
                                        "10.0.0.0/8 ",
                                        "/8",
                                        "[::1]",
                                        "10.0.0.0/8x",
                                        "10.0.0.0/08/1"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++) {
        struct as_address_range range;
        cr_expect_not(as_address_range_parse(texts[i], &range), "%s", texts[i]);
    }
}

Test(address, this_machine)
{
    cr_expect(as_address_is_loopback("127.0.0.1:80"));
    cr_expect(as_address_is_loopback("127.9.9.9:80"));
    cr_expect(as_address_is_loopback("[::1]:80"));
    cr_expect(as_address_is_loopback("[::ffff:127.0.0.1]:80"));
    cr_expect_not(as_address_is_loopback("128.0.0.1:80"));
    cr_expect_not(as_address_is_loopback("[::2]:80"));
    cr_expect_not(as_address_is_loopback("localhost:80"));
}
