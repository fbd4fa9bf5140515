// Makes the generated pages of the documentation anew: npm run docs
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = new URL('../', import.meta.url)

/**
 * Each generated page, and the script that prints it.
 *
 * @type {readonly [page: string, script: string, ...words: string[]][]}
 */
export const generatedPages = [
  ['docs/configuration.md', 'scripts/configuration.mjs'],
  ['docs/security.md', 'scripts/configuration.mjs', 'security'],
  ['docs/http.md', 'scripts/http-reference.mjs'],
  ['docs/api.txt', 'scripts/api-report.mjs'],
  ['docs/command-line.md', 'scripts/command-line.mjs'],
]

/**
 * What a page should hold.
 *
 * @param {readonly string[]} entry of `generatedPages`
 * @throws Error with what its script wrote to stderr
 */
export function made([page, script = '', ...words]) {
  const path = fileURLToPath(new URL(script, root))
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...words], { encoding: 'utf8' })
  if (status !== 0 || stderr !== '') throw new Error(`${page} could not be made by ${script}: ${stderr}`)
  return stdout
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const entry of generatedPages) {
    const file = new URL(entry[0], root)
    const text = made(entry)
    if (readFileSync(file, 'utf8') === text) continue
    writeFileSync(file, text)
    console.log(`${entry[0]} was made anew.`)
  }
}
