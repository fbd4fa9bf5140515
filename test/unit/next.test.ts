import { expect, test } from 'vitest'
import { withStemwork } from '../../src/next/index.js'

test('a standalone build contains the packages that are loaded only once they are needed', () => {
  const files = withStemwork({}, '/api/**').outputFileTracingIncludes?.['/api/**'] ?? []
  // Two versions of srvx are installed: each package that needs srvx has its own.
  for (const name of ['onnxruntime-node', '@tus/server', '@tus/utils', 'srvx', '@tus/server/node_modules/srvx'])
    expect(files).toContainEqual(expect.stringContaining(`/node_modules/${name}/`))
})
