import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../servers/found-server.js'
import { root, unpackInto } from '../package/tarball.js'
import { imageFolder } from './dockerfile.js'
import {
  headings,
  installsFromRegistry,
  installTools,
  project,
  registryAnswers,
  removeProjects,
  run,
  section,
  serve,
  stopServers,
  tarball,
} from './project.js'
import { separateOverHttp } from './separation-over-http.js'

const separated = 'SUCCEEDED vocals accompaniments\n'
const separating = ['esbuild', 'Vite', 'Rollup', 'webpack', 'pnpm', "Yarn Plug'n'Play", 'Bun', 'Deno']
const tested = [...separating.slice(0, 4), 'Next.js', 'NestJS', ...separating.slice(4), 'Docker']

afterEach(stopServers)
afterAll(removeProjects)

test('every section of the page that has commands is tested here', () => {
  expect(headings).toEqual(tested)
})

describe('a program that separates a song, made as the page says', () => {
  beforeAll(async () => {
    if (registryAnswers) await installTools('pnpm@12', '@yarnpkg/cli-dist@4', 'bun@1.4', 'deno@2.9')
  })

  for (const heading of separating) {
    installsFromRegistry(`works with ${heading}`, async () => {
      const { files, commands } = section(heading)
      // Yarn treats a folder as a project if it has its own lock file.
      const place = project(heading.replace(/\W/g, ''), {
        ...files,
        ...(heading.startsWith('Yarn') ? { 'yarn.lock': '' } : {}),
      })
      let output = ''
      for (const command of commands) output = await run(command, place)
      expect(output).toBe(separated)
    })
  }

  for (const [name, command] of [
    ['Bun', 'bun module.mjs'],
    ['Deno', 'deno run --allow-all module.mjs'],
  ] as const) {
    installsFromRegistry(`a service and its client are on ${name}, with jobs that run there`, async () => {
      const place = project(`host-on-${name}`)
      cpSync(join(root, 'test/package/fixtures/hosts'), place, { recursive: true })
      const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object }
      unpackInto(place, tarball(), Object.keys(dependencies))
      expect(await run(command, place)).toBe('SUCCEEDED by wasm: RIFF RIFF, then 404\n')
    })
  }
})

describe('a Next.js application, made as the page says', () => {
  const mount = '/api/media'
  const { files, commands } = section('Next.js')
  const [install = '', dev = '', build = '', startCommand = ''] = commands
  const publicUrl = /PUBLIC_URL=(\S+)/.exec(startCommand)?.[1] ?? ''
  const [standalone = '', start = ''] = startCommand.replace(/^\S+ /, '').split(/ +# without standalone: /)
  const application = {
    'app/layout.js': 'export default function Layout({ children }) { return <html><body>{children}</body></html> }',
    'app/page.js': 'export default function Page() { return <p>stems</p> }',
    'app/api/media/[[...path]]/route.js': readFileSync(join(root, 'examples/next-route.mjs'), 'utf8'),
  }
  let place: string

  beforeAll(async () => {
    place = project('next', { ...files, ...application })
    if (registryAnswers) await run(install, place)
  })

  installsFromRegistry('separates a song while it is developed', async () => {
    const port = await freePort()
    const address = `http://localhost:${port}`
    await serve(dev.replace('http://localhost:3000', address), place, address, { PORT: String(port) })
    await separateOverHttp(`${address}${mount}`)
  })

  installsFromRegistry('separates a song when it was built, with links that lead through the proxy', async () => {
    await run(build, place)
    const port = await freePort()
    await serve(start, place, `http://localhost:${port}`, { PORT: String(port), PUBLIC_URL: publicUrl })
    await separateOverHttp(`http://localhost:${port}${mount}`, { publicUrl })
  })

  installsFromRegistry("separates a song as 'standalone', in a folder of its own", async () => {
    const alone = project('next-alone')
    await run(`cp -r ${join(place, '.next')} .`, alone)
    const port = await freePort()
    const environment = { PORT: String(port), HOSTNAME: 'localhost', PUBLIC_URL: publicUrl }
    await serve(standalone, alone, `http://localhost:${port}`, environment)
    await separateOverHttp(`http://localhost:${port}${mount}`, { publicUrl })
  })

  installsFromRegistry('whose configuration does not name the package says so where its files are not', async () => {
    const unnamed = project('next-unnamed', {
      ...application,
      'next.config.mjs': "export default { output: 'standalone' }",
    })
    renameSync(join(place, 'node_modules'), join(unnamed, 'node_modules'))
    await run(build, unnamed)
    const alone = project('next-unnamed-alone')
    await run(`cp -r ${join(unnamed, '.next')} .`, alone)
    const port = await freePort()
    const address = `http://localhost:${port}`
    const output = await serve(standalone, alone, address, { PORT: String(port), HOSTNAME: 'localhost' })
    expect((await fetch(`${address}${mount}/application`)).status).toBe(500)
    expect(output()).toMatch(/StemworkError[^\n]*Next\.js: withStemwork\(\) of stemwork\/next/)
  })
})

installsFromRegistry('a NestJS application, made as the page says, separates a song', async () => {
  const { files, commands } = section('NestJS')
  const place = project('nest', {
    ...files,
    'app.module.ts':
      "import { Module } from '@nestjs/common'\nimport { MediaModule } from './media.module'\n\n" +
      '@Module({ imports: [MediaModule] })\nexport class AppModule {}\n',
  })
  for (const command of commands.slice(0, -1)) await run(command, place)
  const port = await freePort()
  await serve(commands.at(-1) ?? '', place, `http://localhost:${port}`, { PORT: String(port) })
  await separateOverHttp(`http://localhost:${port}/v1`)
})

describe('the Dockerfile of the examples', () => {
  const dockerfile = readFileSync(join(root, 'examples/docker/Dockerfile'), 'utf8')
  const [build = '', start = ''] = section('Docker').commands
  const key = /STEMWORK_API_KEYS=(\S+)/.exec(start)?.[1] ?? ''
  const dockerRuns = registryAnswers && spawnSync('docker', ['info'], { stdio: 'ignore' }).status === 0

  installsFromRegistry(
    'makes, step by step on this machine, a folder in which the service separates a song',
    async () => {
      const place = project('steps')
      await run('npm install stemwork onnxruntime-node', place)
      const image = await imageFolder(dockerfile, place, run)
      const port = String(await freePort())
      const command = image.command.join(' ').replace('8080', port)
      await serve(command, image.folder, `http://127.0.0.1:${port}/v1/healthz`, { STEMWORK_API_KEYS: key })
      await separateOverHttp(`http://127.0.0.1:${port}/v1`, { key })
      const [program = '', ...given] = image.healthCheck.map((word) => word.replace('8080', port))
      expect(spawnSync(program, given).status).toBe(0)
    },
  )

  test.skipIf(!dockerRuns)(
    `builds an image in which the service separates a song${dockerRuns ? '' : ' (skipped: no docker that runs)'}`,
    async () => {
      // The tarball, which is in no registry yet, goes into the image's first stage, too.
      const place = project('image', {
        Dockerfile: dockerfile.replace('COPY package.json ', 'COPY stemwork.tgz package.json '),
      })
      copyFileSync(tarball().path, join(place, 'stemwork.tgz'))
      await run('npm install ./stemwork.tgz onnxruntime-node', place)
      await run(build, place)
      const port = await freePort()
      const mount = `http://127.0.0.1:${port}/v1`
      await serve(start.replace('8080:', `${port}:`), place, `${mount}/healthz`, {})
      await separateOverHttp(mount, { publicUrl: mount, key })
    },
  )
})
