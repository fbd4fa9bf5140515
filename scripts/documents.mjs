// Makes the generated pages of the documentation anew: npm run docs
// With "check" changes nothing and names the pages that are out of date.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = new URL('../', import.meta.url)
const isCheck = process.argv[2] === 'check'

/** Each generated page, and the script that prints it. */
const pages = [
  ['docs/configuration.md', 'scripts/configuration.mjs'],
  ['docs/security.md', 'scripts/configuration.mjs', 'security'],
  ['docs/http.md', 'scripts/http-reference.mjs'],
  ['docs/api.txt', 'scripts/api-report.mjs'],
  ['docs/command-line.md', 'scripts/command-line.mjs'],
  ['docs/licences.md', 'scripts/licences.mjs'],
]

for (const [page, script, ...words] of pages) {
  const path = fileURLToPath(new URL(script, root))
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...words], { encoding: 'utf8' })
  if (status !== 0 || stderr !== '') throw new Error(`${page} could not be made by ${script}: ${stderr}`)
  const file = new URL(page, root)
  if (readFileSync(file, 'utf8') === stdout) continue
  if (!isCheck) writeFileSync(file, stdout)
  console.log(`${page} ${isCheck ? 'is out of date' : 'was made anew'}.`)
}
