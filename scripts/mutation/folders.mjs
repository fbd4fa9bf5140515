// The folders to mutate, each with the tests that should fail, nearest first: tests of behaviour that need no servers.
// `/*` stands for the files of a folder without its subfolders.
const rules = ['test/unit/*', 'test/contract/stores/memory.test.ts']

// Tests that run jobs.
const engineTests = ['dispatch', 'lifecycle', 'workflow', 'intake', '*'].map((part) => `test/engine/${part}`)

export const folders = [
  {
    folder: 'src/core/engine/job',
    tests: ['test/unit/job', ...rules, 'test/unit/webhooks', 'test/engine/dispatch/retry.test.ts'],
  },
  {
    folder: 'src/core/engine/dispatch',
    tests: ['test/unit/dispatch', 'test/unit/store-contact.test.ts', ...engineTests],
  },
  { folder: 'src/core/engine/batch', tests: ['test/unit/*', 'test/engine/intake/batch.test.ts'] },
  { folder: 'src/adapters/stores/shared', tests: [...rules, 'test/contract/stores/keyv.test.ts'] },
  { folder: 'src/http/auth', tests: ['test/unit/*', 'test/http/auth/keys.test.ts'] },
  { folder: 'src/core/media/dsp', tests: ['test/unit/dsp'] },
]
