// Runs every benchmark of this folder, or the named ones, with the given options: node benchmarks/run.mjs [pipeline
// ...] [--option=value]
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'

const own = basename(import.meta.filename)
const given = process.argv.slice(2)
const options = given.filter((argument) => argument.startsWith('--'))
const wanted = given.filter((argument) => !options.includes(argument))
const all = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.mjs') && file !== own)
const chosen = wanted.length > 0 ? all.filter((file) => wanted.includes(basename(file, '.mjs'))) : all

let failed = chosen.length === 0
if (failed) console.error(`No such benchmark. Available: ${all.map((file) => basename(file, '.mjs')).join(', ')}`)
for (const file of chosen) {
  console.log(`\n# ${basename(file, '.mjs')}\n`)
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, file), ...options], { stdio: 'inherit' })
  failed ||= status !== 0
}
process.exitCode = failed ? 1 : 0
