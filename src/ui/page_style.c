/*
 * Colors stand in variables: once for light, once for dark. Each pair of text and background has a
 * contrast of 4.5 or more. Up to 720 pixels, a row of a table is a card.
 */
#include "page_style.h"

#include <openssl/sha.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/ui/chart.h>

#define STYLE_MAX ((size_t)64 * 1024)

static const char sheet[] =
    ":root{color-scheme:light dark;--page:#fff;--soft:#f6f8fa;--line:#d1d9e0;--text:#1f2328;"
    "--dim:#59636e;--link:#0757b5;--good:#1a6e2e;--good-back:#dafbe1;--warn:#7d4e00;"
    "--warn-back:#fff4d1;--bad:#b3131f;--bad-back:#ffebe9}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#0d1117;--soft:#161b22;--line:#30363d;"
    "--text:#e6edf3;--dim:#9da7b3;--link:#6cb0ff;--good:#4cc763;--good-back:#12261a;"
    "--warn:#e0aa3e;--warn-back:#2b2111;--bad:#ff8b82;--bad-back:#301517}}\n"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--page);color:var(--text);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;overflow-wrap:anywhere}"
    "header,main,footer{max-width:76rem;margin:0 auto;padding:0 1rem}"
    ".bar{background:var(--soft);border-bottom:1px solid var(--line)}"
    ".bar header{display:flex;flex-wrap:wrap;align-items:center;gap:.2rem 1.4rem;"
    "padding-top:.6rem;padding-bottom:.6rem}"
    ".brand{font-weight:700;color:var(--text);text-decoration:none}"
    "nav ul{display:flex;gap:1.2rem;list-style:none;margin:0;padding:0}"
    "nav a[aria-current]{color:var(--text);font-weight:600;text-decoration:none}"
    ".where{margin-left:auto;color:var(--dim);font-size:13px}"
    "a{color:var(--link)}a:focus-visible,:focus-visible{outline:2px solid var(--link);"
    "outline-offset:2px}"
    "h1{font-size:1.5rem;line-height:1.25;margin:1.4rem 0 .3rem}"
    "h2{font-size:1.1rem;margin:2rem 0 .6rem}h3{font-size:.95rem;margin:1.2rem 0 .3rem}"
    "p{margin:.4rem 0}small,.dim{color:var(--dim)}small{font-size:13px}"
    "code,pre,.id{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}"
    ".id{color:var(--dim)}"
    "pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.7rem .9rem;"
    "margin:.4rem 0;white-space:pre-wrap}"
    ".pill{display:inline-block;border-radius:1em;padding:0 .65em;font-size:13px;font-weight:600;"
    "background:var(--soft);border:1px solid var(--line);white-space:nowrap}"
    ".good{color:var(--good);background:var(--good-back);border-color:currentColor}"
    ".warn{color:var(--warn);background:var(--warn-back);border-color:currentColor}"
    ".bad{color:var(--bad);background:var(--bad-back);border-color:currentColor}"
    ".note{border-left:3px solid;border-radius:4px;padding:.45rem .8rem;margin:.6rem 0}"
    ".note.warn,.note.bad,.note.good{border-color:currentColor}"
    ".facts{display:flex;flex-wrap:wrap;gap:.4rem 2rem;margin:.6rem 0}"
    ".facts div{min-width:5rem}.facts dt{color:var(--dim);font-size:13px}"
    ".facts dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;padding:.4rem 1.2rem .4rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top}th{font-size:13px;font-weight:600;color:var(--dim);white-space:nowrap}"
    "th.number,td.number{text-align:right;font-variant-numeric:tabular-nums}"
    "tbody tr:hover{background:var(--soft)}"
    "ul.plain{list-style:none;margin:0;padding:0}ul.plain li{padding:.15rem 0}"
    "li.set-in{margin-left:1.4rem;color:var(--dim)}"
    "form.filter{display:flex;flex-wrap:wrap;gap:.5rem;align-items:end;margin:.6rem 0}"
    "form.filter label{font-size:13px;color:var(--dim)}"
    "input,select,button,textarea{font:inherit;color:var(--text);background:var(--page);"
    "border:1px solid var(--dim);border-radius:6px;padding:.25rem .6rem;max-width:100%}"
    "textarea{width:100%;font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}"
    "time{white-space:nowrap}td>div{min-width:4.5rem}"
    "label input,label select{display:block;margin-top:.1rem}"
    "button{background:var(--soft);cursor:pointer}"
    "form.order{max-width:26rem;margin:.6rem 0}form.order label{display:block;margin:.5rem 0}"
    "form.order label:not(.check) input{width:100%}"
    "form.order .check input{display:inline;width:auto;margin:0 .4rem 0 0}"
    "form.order button{margin-top:.3rem;font-weight:600}"
    "details.order{border:1px solid var(--line);border-radius:6px;padding:.4rem .9rem;"
    "margin:.5rem 0;max-width:30rem}details.order summary{cursor:pointer;font-weight:600}"
    ".pages{display:flex;gap:1.2rem;margin:.8rem 0}"
    "svg{display:block;max-width:100%;height:auto}"
    ".spark{width:120px;height:28px}"
    ".spark path{fill:none;stroke:var(--link);stroke-width:1.5}"
    ".spark line{stroke:var(--dim)}"
    ".narrow{display:none}"
    "footer{color:var(--dim);font-size:13px;padding-top:1.6rem;padding-bottom:2rem}"
    "footer p{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}"
    "@media(max-width:720px){.wide{display:none}.narrow{display:block}.where{margin-left:0}"
    "table,tbody,tr,td{display:block;width:100%}"
    "thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}"
    "tr{border:1px solid var(--line);border-radius:6px;padding:.4rem .8rem;margin:.6rem 0}"
    "td,td.number{display:flex;gap:.8rem;border:0;padding:.15rem 0;text-align:left}"
    "td::before{content:attr(data-title);flex:0 0 6.5rem;color:var(--dim);font-size:13px}"
    "td>div{flex:1;min-width:0}}\n";

static void print_sheet(struct as_buf *out)
{
    as_buf_append_str(out, sheet);
    as_buf_append_str(out, as_chart_dark_style);
}

void style_print(struct as_buf *out)
{
    as_buf_append_str(out, "<style>");
    print_sheet(out);
    as_buf_append_str(out, "</style>");
}

void style_print_policy(struct as_buf *headers)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    AS_CLEANUP(as_buf_deinit) struct as_buf style = AS_BUF_INIT(STYLE_MAX);
    print_sheet(&style);
    SHA256((const unsigned char *)style.data, style.size, digest);
    as_buf_append_str(headers, "Content-Security-Policy: default-src 'none'; style-src 'sha256-");
    as_encode_base64(headers, digest, sizeof(digest));
    as_buf_append_str(headers,
                      "'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n");
}
