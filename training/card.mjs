// Measures the model in the package by `stemwork evaluate` and writes the tables into its card, between their markers:
//   node card.mjs <data> <work>
// on the songs of <data>/everything-is-free, and on mixes of the sources that are held out, which it makes in <work>/card first.
// Needs a build of the package (npm run build) and what the README of this folder names.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const card = join(here, '../models/embedded/README.md')
const [data, work] = process.argv.slice(2)
if (!work) throw new Error('Usage: node card.mjs <data> <work>')
const made = join(work, 'card')
python('prepare.py', '--data', data, '--work', made, '--sung-minutes', '0')
python('songs.py', '--work', made, '--out', join(made, 'held-out'))
write('everything-is-free', evaluated(join(data, 'everything-is-free')))
write('held-out', evaluated(join(made, 'held-out')))

function python(script, ...options) {
  execFileSync(process.env.PYTHON ?? '/usr/bin/python3', [join(here, script), ...options], { stdio: 'inherit' })
}

function evaluated(folder) {
  return execFileSync(process.execPath, [join(here, '../dist/cli/main.js'), 'evaluate', folder], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

function write(name, table) {
  const text = readFileSync(card, 'utf8')
  const section = new RegExp(`(<!-- evaluate ${name} -->\n)[^]*?(<!-- end -->)`)
  if (!section.test(text)) throw new Error(`The model card has no section <!-- evaluate ${name} -->.`)
  writeFileSync(card, text.replace(section, (_, start, end) => `${start}\n${table}\n${end}`))
}
