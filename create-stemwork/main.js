#!/usr/bin/env node
// npm create stemwork [folder] -- [--template express|hono|engine|workflow]
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { makeProject, ProjectError, templates } from './project.js'

const usage = `Usage: npm create stemwork [folder] -- --template ${Object.keys(templates).join('|')}

${Object.entries(templates)
  .map(([name, { about }]) => `  ${name.padEnd(10)}${about}`)
  .join('\n')}

Without a folder: my-stems. Without --template, it asks for one.
`

try {
  const { folder, template, help } = given(process.argv.slice(2))
  if (help) process.stdout.write(usage)
  else {
    const made = await makeProject(folder ?? 'my-stems', template ?? (await askForTemplate()))
    const place = /^[\w./\\:-]+$/.test(made.folder) ? made.folder : `"${made.folder}"`
    process.stdout.write(
      `Created ${made.files.length} files in ${made.folder}. Next:\n\n  cd ${place}\n  npm install\n  ${made.start}\n`,
    )
  }
} catch (error) {
  if (!(error instanceof ProjectError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

function given(words) {
  try {
    const { values, positionals } = parseArgs({
      args: words,
      allowPositionals: true,
      options: { template: { type: 'string', short: 't' }, help: { type: 'boolean', short: 'h' } },
    })
    if (positionals.length > 1) throw new Error(`One folder is expected; there are ${positionals.length}.`)
    return { folder: positionals[0], ...values }
  } catch (error) {
    throw new ProjectError(`${error.message}\n\n${usage}`)
  }
}

async function askForTemplate() {
  const names = Object.keys(templates)
  if (!process.stdin.isTTY) throw new ProjectError(`Name a template: --template ${names.join('|')}.`)
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return (await terminal.question(`${usage}\nTemplate (${names.join(', ')}): `)).trim() || names[0]
  } finally {
    terminal.close()
  }
}
