// Regenerates the generated pages of the documentation: npm run docs. With "check" changes nothing and names the pages
// that are out of date.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = new URL('../', import.meta.url)
const isCheck = process.argv[2] === 'check'

/** Each generated page and the script that prints it; the script of a folder prints all of its pages as JSON. */
const pages = [
  ['docs/configuration.md', 'scripts/configuration.mjs'],
  ['docs/security.md', 'scripts/configuration.mjs', 'security'],
  ['src/service-config.ts', 'scripts/configuration.mjs', 'type'],
  ['docs/http/', 'scripts/http-reference.mjs'],
  ['docs/api.txt', 'scripts/api-report.mjs'],
  ['docs/command-line.md', 'scripts/command-line.mjs'],
  ['docs/licences.md', 'scripts/licences.mjs'],
]

for (const [page, script, ...words] of pages) {
  const path = fileURLToPath(new URL(script, root))
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...words], { encoding: 'utf8' })
  if (status !== 0 || stderr !== '') throw new Error(`${page} could not be made by ${script}: ${stderr}`)
  for (const [name, text] of Object.entries(page.endsWith('/') ? JSON.parse(stdout) : { [page]: stdout })) {
    const file = new URL(name, root)
    if (existsSync(file) && readFileSync(file, 'utf8') === text) continue
    if (!isCheck) writeFileSync(file, text)
    console.log(`${name} ${isCheck ? 'is out of date' : 'was regenerated'}.`)
  }
}
