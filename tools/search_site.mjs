// Searches the built documentation site with its own index and library.
//
//     node tools/search_site.mjs target/site QUESTION...
//
// Prints one JSON list for each question: the addresses found, the best first.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';

const [site, ...questions] = process.argv.slice(2);
const files = fs.readdirSync(site);
const browser = { window: { search: {} } };
vm.createContext(browser);
for (const name of ['elasticlunr', 'searchindex']) {
    const file = files.find((each) => each.startsWith(name) && each.endsWith('.js'));
    vm.runInContext(fs.readFileSync(path.join(site, file), 'utf8'), browser);
}
const { search } = browser.window;
const library = browser.elasticlunr ?? browser.window.elasticlunr;
const index = library.Index.load(search.index);
for (const question of questions) {
    const found = index.search(question, search.search_options);
    console.log(JSON.stringify(found.map((each) => search.doc_urls[each.ref])));
}
