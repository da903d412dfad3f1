/*
 * Keeps a page current. While the page is visible, it is requested again every two seconds, with
 * the version that is shown. An answer 304 changes nothing. Another answer is parsed into a document
 * of its own, and compared with the page. Elements are made one by one, and text is set as text:
 * nothing of an answer runs, or is parsed, in this page. A form that is in use stays as it is.
 *
 * docs/page.md describes this for users, docs/security.md what it may do.
 */
'use strict';
(() => {
    const EVERY_MS = 2000, WAIT_MS = 10000;
    const find = id => document.getElementById(id);
    let version = find('live').dataset.version, timer = 0, isOver = false;
    let ahead = Number(find('live').dataset.now) - Date.now(); // the daemon's clock

    // Times

    function printSpan(us) {
        const s = Math.max(0, Math.floor(us / 1000));
        return s < 120 ? `${s} s` : s < 7200 ? `${Math.floor(s / 60)} min`
            : s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
    }

    const getZone = () => localStorage.getItem('zone') === 'local' ? 'local' : 'UTC';

    // "2026-11-20 14:03:12", in the zone that the reader has chosen
    function printTime(at) {
        const shift = getZone() === 'local' ? new Date(at).getTimezoneOffset() * 60000 : 0;
        return new Date(at - shift).toISOString().slice(0, 19).replace('T', ' ');
    }

    const spans = {
        at: printTime,
        ago: at => `${printSpan(Date.now() + ahead - at)} ago`,
        for: at => printSpan(Date.now() + ahead - at),
        left: at => printSpan(at - Date.now() - ahead),
    };

    function printTimes(root) {
        for (const time of root.querySelectorAll('time[class]')) {
            const print = spans[time.className];
            const text = print && print(Date.parse(time.dateTime));
            if (print && time.textContent !== text)
                time.textContent = text;
        }
    }

    function addSwitch() {
        const text = find('zone'), button = document.createElement('button');
        if (!text)
            return;
        button.id = 'zone';
        button.textContent = getZone();
        button.title = 'Switch between UTC and local time';
        button.addEventListener('click', () => {
            localStorage.setItem('zone', getZone() === 'local' ? 'UTC' : 'local');
            button.textContent = getZone();
            printTimes(document);
        });
        text.replaceWith(button);
    }

    // Elements

    const isAllowed = (name, value) => !/^(on|style$|src|formaction$)/i.test(name) &&
        (!/^(href|action)$/i.test(name) || /^(https?:\/\/|[/?#])/i.test(value));
    const isElement = node => node.nodeType === Node.ELEMENT_NODE;
    const getKey = node => isElement(node) && node.dataset && node.dataset.key || '';
    const isAlike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && getKey(a) === getKey(b);

    function copy(from) {
        if (!isElement(from))
            return document.createTextNode(from.textContent);
        const to = document.createElementNS(from.namespaceURI, from.localName);
        merge(to, from);
        return to;
    }

    function mergeAttributes(to, from) {
        for (const {name} of [...to.attributes])
            if (name !== 'open' && !from.hasAttribute(name))
                to.removeAttribute(name);
        for (const {name, value} of from.attributes)
            if (name !== 'open' && to.getAttribute(name) !== value && isAllowed(name, value))
                to.setAttribute(name, value);
    }

    function isInUse(form) {
        return form.contains(document.activeElement) || [...form.elements].some(field =>
            field.localName === 'select'
                ? field.selectedIndex !== Math.max(0, [...field.options].findIndex(o => o.defaultSelected))
                : field.type === 'checkbox' ? field.checked !== field.defaultChecked
                : field.defaultValue !== undefined && field.value !== field.defaultValue);
    }

    // Makes `to` like `from`. Nodes that are alike stay, so that focus and selection stay too.
    function merge(to, from) {
        if (to.localName === 'form' && to.isConnected && isInUse(to))
            return;
        mergeAttributes(to, from);
        let at = to.firstChild;
        for (const next of from.childNodes) {
            if (!isElement(next) && next.nodeType !== Node.TEXT_NODE || next.localName === 'script')
                continue;
            let found = at;
            while (getKey(next) && found && getKey(found) !== getKey(next))
                found = found.nextSibling;
            if (!found || !isAlike(found, next)) {
                to.insertBefore(copy(next), at);
                continue;
            }
            while (at !== found) {
                const gone = at;
                at = at.nextSibling;
                gone.remove();
            }
            at = at.nextSibling;
            if (isElement(next))
                merge(found, next);
            else if (found.textContent !== next.textContent)
                found.textContent = next.textContent;
        }
        while (at) {
            const gone = at;
            at = at.nextSibling;
            gone.remove();
        }
    }

    // Requests

    function say(text) {
        const note = find('live');
        note.hidden = !text;
        if (note.textContent !== text)
            note.textContent = text;
    }

    function show(text) {
        const fresh = new DOMParser().parseFromString(text, 'text/html');
        const live = fresh.getElementById('live'), main = fresh.querySelector('main');
        if (!live || !main)
            return false;
        version = live.dataset.version;
        ahead = Number(live.dataset.now) - Date.now();
        printTimes(fresh);
        document.title = fresh.title;
        merge(document.querySelector('main'), main);
        return true;
    }

    async function ask() {
        const url = new URL(location.href);
        url.hash = '';
        url.searchParams.set('since', version);
        const answer = await fetch(url, {
            headers: {'If-None-Match': `"${version}"`}, cache: 'no-store', redirect: 'error',
            signal: AbortSignal.timeout(WAIT_MS),
        });
        if (answer.status === 304)
            return say('');
        if (answer.status === 401) {
            isOver = true;
            return say('You are not logged in any more. This page is not current. To log in, load it again.');
        }
        const type = answer.headers.get('Content-Type') || '';
        if (type.startsWith('text/html') && show(await answer.text()))
            return say('');
        return say(`The answer has the status ${answer.status}. This page is not current.`);
    }

    async function run() {
        clearTimeout(timer);
        timer = 0;
        if (isOver || document.hidden)
            return;
        try {
            await ask();
        } catch (problem) {
            say('alertscaler does not answer. This page is not current.');
        }
        clearTimeout(timer);
        timer = setTimeout(run, EVERY_MS);
    }

    document.addEventListener('keydown', event => {
        const field = document.querySelector('input[type=search]');
        if (event.key !== '/' || !field || /^(input|select|textarea)$/.test(event.target.localName))
            return;
        event.preventDefault();
        field.focus();
        field.select();
    });
    addSwitch();
    printTimes(document);
    document.addEventListener('visibilitychange', run);
    timer = setTimeout(run, EVERY_MS);
    setInterval(() => document.hidden || printTimes(document), 1000);
})();
