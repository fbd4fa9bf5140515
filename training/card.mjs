// Measures the model in the package with `stemwork evaluate` and writes the tables into its card, between their markers:
//   node card.mjs <data> <work>
// on mixes of held-out sources, which it first makes in <work>/card, and on the songs of <data>/everything-is-free; the results of stability.mjs; and,
// if the songs were trained on, what recipe.sh measured in <work>/folds with each of them held out.
// Needs a build of the package (npm run build) and the requirements in the README of this folder.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const card = join(here, '../models/embedded/README.md')
const [data, work] = process.argv.slice(2)
if (!work) throw new Error('Usage: node card.mjs <data> <work>')
const made = join(work, 'card')
if (existsSync(join(work, 'folds'))) write('left-out', leftOut(join(work, 'folds')))
python(
  'prepare.py',
  '--data',
  data,
  '--work',
  made,
  '--sung-minutes',
  '0',
  '--espeak-minutes',
  '0',
  '--arranged-minutes',
  '0',
  '--synthesized-minutes',
  '0',
)
python('songs.py', '--work', made, '--out', join(made, 'held-out'))
write('held-out', evaluated(join(made, 'held-out')))
write('everything-is-free', evaluated(join(data, 'everything-is-free')))
write('stability', printed([join(here, 'stability.mjs'), data, '--model', 'embedded']))

function python(script, ...options) {
  execFileSync(process.env.PYTHON ?? '/usr/bin/python3', [join(here, script), ...options], { stdio: 'inherit' })
}

function evaluated(folder) {
  return printed([join(here, '../dist/cli/main.js'), 'evaluate', folder])
}

function printed(command) {
  return execFileSync(process.execPath, command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

/** A row per song, a column per method; the first two are the network without this song, and the package's model at the time. */
function leftOut(folder) {
  const songs = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({
      ...JSON.parse(readFileSync(join(folder, name), 'utf8')).songs[0],
      song: name.replace('.json', ''),
    }))
  const names = ['without the song', 'the model before', ...songs[0].methods.slice(2).map(({ method }) => method)]
  const row = (name, cells) => `| ${[name, ...cells].join(' | ')} |`
  const pair = (vocals, accompaniments) => `${vocals.toFixed(2)} / ${accompaniments.toFixed(2)}`
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
  const means = names.map((_, column) =>
    ['vocals', 'accompaniments'].map((stem) => mean(songs.map(({ methods }) => methods[column][stem].uSdr))),
  )
  return [
    row('uSDR, dB', names),
    row(
      '---',
      names.map(() => '---:'),
    ),
    ...songs.map(({ song, methods }) =>
      row(
        song,
        methods.map(({ vocals, accompaniments }) => pair(vocals.uSdr, accompaniments.uSdr)),
      ),
    ),
    row(
      'mean',
      means.map(([vocals, accompaniments]) => pair(vocals, accompaniments)),
    ),
  ].join('\n')
}

function write(name, table) {
  const text = readFileSync(card, 'utf8')
  const section = new RegExp(`(<!-- evaluate ${name} -->\n)[^]*?(<!-- end -->)`)
  if (!section.test(text)) throw new Error(`The model card has no section <!-- evaluate ${name} -->.`)
  writeFileSync(
    card,
    text.replace(section, (_, start, end) => `${start}\n${table.trim()}\n\n${end}`),
  )
}
