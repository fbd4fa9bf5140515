import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Stemwork } from './stemwork.js'

const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url))

describe('on a Node that is too old, the command line', () => {
  it('names the versions that it works with', async () => {
    const { status, stdout, stderr } = await new Stemwork(['--version'], undefined, {
      NODE_OPTIONS: `--require "${fixture('old-node.cjs')}"`,
    }).finished()
    expect(stderr).toBe('stemwork: This is Node 18.20.8, which is too old. Install Node 20.19+ or 22.12+.\n')
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  })

  // Imports are linked before anything runs: a single name missing in old Node.js would replace the message.
  it('loads nothing before it has checked the version', async () => {
    const main = new URL('../../dist/cli/main.js', import.meta.url)
    const imports = async (file: URL) =>
      [...(await readFile(file, 'utf8')).matchAll(/^import\b[^;]*"(.*)";$/gm)].map(([, path = '']) => path)
    const imported = await imports(main)
    expect(imported).toEqual([expect.stringMatching(/^\.\.\/core\/shared\//)])
    expect(await imports(new URL(imported[0] ?? '', main))).toEqual([])
  })
})

describe('a package that is not installed is named with the command that installs it:', () => {
  const s3 = '@aws-sdk/client-s3 @aws-sdk/s3-request-presigner'
  it.each([
    ['pg', ['--store', 'postgres://127.0.0.1:1/none', '--blobs', 'file:blobs'], 'pg'],
    [s3, ['--blobs', 's3://bucket'], s3],
    ['@aws-sdk/s3-request-presigner', ['--blobs', 's3://bucket'], '@aws-sdk/s3-request-presigner'],
    ['keyv @keyv/redis', ['--store', 'redis://127.0.0.1:1', '--blobs', 'file:blobs'], 'keyv @keyv/redis'],
  ])('%s', async (absent, options, named) => {
    const { status, stderr } = await new Stemwork(['serve', '--port', '0', '--api-only', ...options], undefined, {
      NODE_OPTIONS: `--import "${pathToFileURL(fixture('absent-packages.mjs')).href}"`,
      ABSENT: absent.replaceAll(' ', ','),
    }).finished()
    expect(stderr).toContain(`not installed. Run: npm install ${named} (Cannot find package`)
    expect(status).toBe(1)
  })

  it('a program that keeps files in S3', () => {
    const { href } = new URL('../../dist/adapters/blobs/s3/index.js', import.meta.url)
    const program = `import { S3Client } from '@aws-sdk/client-s3'
      import { s3Blobs } from '${href}'
      s3Blobs({ client: new S3Client({ region: 'x' }), bucket: 'media' })`
    const hook = pathToFileURL(fixture('absent-packages.mjs')).href
    const { stderr } = spawnSync(process.execPath, ['--import', hook, '--input-type=module', '--eval', program], {
      encoding: 'utf8',
      env: { ...process.env, ABSENT: '@aws-sdk/s3-request-presigner' },
    })
    expect(stderr).toContain('not installed. Run: npm install @aws-sdk/s3-request-presigner\n')
  })
})
