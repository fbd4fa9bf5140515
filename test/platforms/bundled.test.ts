import { copyFileSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { root } from '../package/tarball.js'
import { installsFromRegistry, project, registryAnswers, removeProjects, run } from './project.js'

// `test/package/bundled.test.ts` tests esbuild and Vite.
afterAll(removeProjects)

/** Configurations that leave stemwork in the bundle: without any exclusion, or with only its main entry excluded. */
const mistakes: Record<string, { name: string; config: string }[]> = {
  webpack: [
    { name: 'no externals', config: webpack('') },
    { name: "externals: 'stemwork'", config: webpack("externals: { stemwork: 'module stemwork' },") },
  ],
  rollup: [
    { name: 'no external', config: rollup('') },
    { name: "external: 'stemwork'", config: rollup("external: ['stemwork'],") },
  ],
}
const packages = {
  webpack: 'webpack webpack-cli',
  rollup: 'rollup @rollup/plugin-node-resolve @rollup/plugin-commonjs @rollup/plugin-json',
}

function webpack(externals: string): string {
  return `export default {
  target: 'node',
  // Faster than for production.
  mode: 'development',
  devtool: false,
  entry: './service.mjs',
  ${externals}
  experiments: { outputModule: true },
  output: { module: true, path: import.meta.dirname + '/dist', filename: 'service.mjs' },
}
`
}

function rollup(external: string): string {
  return `import commonjs from '@rollup/plugin-commonjs'
import json from '@rollup/plugin-json'
import resolve from '@rollup/plugin-node-resolve'

export default {
  input: 'service.mjs',
  ${external}
  output: { file: 'dist/service.mjs', inlineDynamicImports: true },
  plugins: [resolve({ preferBuiltins: true }), commonjs(), json()],
}
`
}

describe.each(Object.entries(packages))('a service that was bundled by %s', (bundler, needed) => {
  let place: string

  beforeAll(async () => {
    if (!registryAnswers) return
    place = project(bundler)
    copyFileSync(join(root, 'test/package/fixtures/service.mjs'), join(place, 'service.mjs'))
    await run('npm install stemwork', place)
    await run(`npm install --save-dev ${needed}`, place)
  })

  for (const { name, config } of mistakes[bundler] ?? []) {
    installsFromRegistry(`says which setting leaves it out (${name})`, async () => {
      const files = { [`${bundler}.config.mjs`]: config }
      const other = project(`${bundler}-${name.replaceAll(/\W/g, '')}`, files)
      for (const entry of ['service.mjs', 'node_modules']) renameSync(join(place, entry), join(other, entry))
      try {
        await run(`npx ${bundler} ${bundler === 'rollup' ? '--config --silent' : ''}`, other)
        // In the folder where webpack built it, the bundle knows the package's location.
        mkdirSync(join(other, 'server'))
        for (const entry of ['dist', 'node_modules']) renameSync(join(other, entry), join(other, 'server', entry))
        const ended = run('node server/dist/service.mjs', other)
        await expect(ended).rejects.toThrow(/MISSING_DEPENDENCY .*webpack: externals: .*Rollup: external: /)
      } finally {
        renameSync(join(other, 'service.mjs'), join(place, 'service.mjs'))
        renameSync(join(other, 'server/node_modules'), join(place, 'node_modules'))
      }
    })
  }
})
