import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, vi } from 'vitest'
import { commandsOf, describeSnippets, type SnippetProject } from '../examples/snippet-runs.js'
import { installsOf, pageOf, runSnippets } from '../examples/snippets.js'
import { root } from '../package/tarball.js'
import { project, registryAnswers, removeProjects, run } from './project.js'

// Every snippet of the documentation, in an empty project with the packed tarball and the installs of the snippet's
// page. Pages with the same installs share a project.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 1_200_000 })

const snippets = runSnippets()
const projects = new Map<string, SnippetProject>()
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  devDependencies: Record<string, string>
}

afterAll(removeProjects)

describe.skipIf(!registryAnswers)('in a project that has what their page says to install', () => {
  beforeAll(async () => {
    for (const page of new Set(snippets.map(pageOf))) {
      const installs = installsOf(page)
      const name = nameOf(installs)
      if (projects.has(name)) continue
      const folder = project(name)
      for (const install of installs) await run(`npm install ${install.join(' ')}`, folder)
      // Types that a TypeScript project also has, for the type check.
      const types = ['@types/node', ...installs.flat().map((word) => `@types/${word}`)]
      const known = types.filter((type) => type in devDependencies).map((type) => `${type}@${devDependencies[type]}`)
      await run(`npm install --save-dev ${known.join(' ')}`, folder)
      await run('npm pkg set type=module', folder)
      projects.set(name, { folder, bin: await commandsOf(folder, join(folder, 'node_modules/stemwork')) })
    }
  })

  describeSnippets(snippets, async (page) => {
    const made = projects.get(nameOf(installsOf(page)))
    if (!made) throw new Error(`No project was made for ${page}.`)
    return made
  })
})

/** The name of the project for a list of installs. */
function nameOf(installs: readonly string[][]): string {
  return ['with', ...installs.flat()].join('-').replace(/[^a-z0-9-]+/gi, '')
}
