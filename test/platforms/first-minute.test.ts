import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { snippetsOf } from '../examples/snippets.js'
import { root } from '../package/tarball.js'
import { freePort } from '../servers/found-server.js'
import {
  installsFromRegistry,
  installTools,
  project,
  registryAnswers,
  removeProjects,
  run,
  serve,
  stopServers,
  tarball,
} from './project.js'
import { separateOverHttp } from './separation-over-http.js'

// From an empty folder and an empty HOME, and so without any cache, to the first stems and to an embedded service, by
// the README's lines: with each package manager, reporting the seconds.

interface Manager {
  name: string
  /** Replacements for the README's `npm install` and `npx`. */
  install: string
  run: string
  node: string
  /** Yarn treats a folder as a project if it has its own lock file. */
  files?: Record<string, string>
}

const managers: Manager[] = [
  { name: 'npm', install: 'npm install', run: 'npx', node: 'node' },
  { name: 'pnpm', install: 'pnpm add', run: 'pnpm exec', node: 'node' },
  { name: 'Yarn', install: 'yarn add', run: 'yarn run', node: 'yarn node', files: { 'yarn.lock': '' } },
  { name: 'Bun', install: 'bun add', run: 'bunx', node: 'bun' },
]

/** The README's lines that install and that separate a file. */
const readme = snippetsOf('README.md')
const lines = readme.filter(({ language }) => language === 'sh').flatMap(({ code }) => code.split('\n'))
const lineOf = (start: RegExp): string => {
  const line = lines.find((each) => start.test(each))
  if (line === undefined) throw new Error(`The README has no line such as ${String(start)}.`)
  return line.replace(/ +#.*/, '')
}
const server = readme.find(({ code }) => code.includes('express()'))?.code ?? ''

beforeAll(async () => {
  tarball()
  if (registryAnswers) await installTools('pnpm@12', '@yarnpkg/cli-dist@4', 'bun@1.4')
})
afterEach(stopServers)
afterAll(removeProjects)

for (const { name, files, ...words } of managers) {
  installsFromRegistry(`from nothing to stems, and to a service, with ${name}`, async () => {
    const place = project(`first-${name}`, { ...files, 'server.mjs': server })
    const home = join(place, '..', `home-of-${name}`)
    mkdirSync(home)
    copyFileSync(join(root, 'test/fixtures/audio/stereo.mp3'), join(place, 'song.mp3'))
    const clean = {
      HOME: home,
      XDG_CACHE_HOME: undefined,
      XDG_DATA_HOME: undefined,
      npm_config_cache: undefined,
      YARN_GLOBAL_FOLDER: join(home, 'yarn'),
      CI: '1',
    }
    const spelled = (line: string) => line.replace(/^npm install/, words.install).replace(/^npx/, words.run)
    const startedAt = performance.now()
    const seconds = () => ((performance.now() - startedAt) / 1000).toFixed(1)
    await run(spelled(lineOf(/^npm install stemwork$/)), place, clean)
    const installed = seconds()
    await run(spelled(lineOf(/^npx stemwork separate song\.mp3/)), place, clean)
    for (const stem of ['vocals', 'accompaniments'])
      expect(existsSync(join(place, 'stems', `${stem}.wav`)), stem).toBe(true)
    const stems = seconds()
    await run(spelled('npm install express'), place, clean)
    const port = await freePort()
    const output = await serve(`${words.node} server.mjs`, place, `http://127.0.0.1:${port}/v1/healthz`, {
      ...clean,
      PORT: String(port),
    })
    const key = /API key (\S+)/.exec(output())?.[1] ?? ''
    await separateOverHttp(`http://127.0.0.1:${port}/v1`, { key })
    console.log(`${name}: installed after ${installed} s, first stems after ${stems} s, service after ${seconds()} s`)
  })
}
