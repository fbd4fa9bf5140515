/** The environment that a snippet's host provides. */
export interface Surroundings {
  /** A running service with the key `a-key-of-your-own`. */
  base: string
  databaseUrl: string
  redisUrl: string
  s3: { url: string; accessKeyId: string; secretAccessKey: string }
}

export interface Treatment {
  /** Code that the page has shown or that the host has; it precedes the snippet. */
  before?: string
  /** Checks the snippet's effect, and ends it if it would keep running. */
  after?: string
  /** Replacements for parts of the host. */
  replace?: (surroundings: Surroundings) => [text: string, standIn: string][]
  /** Output that the snippet must print. */
  prints?: RegExp
  /** Whether it keeps serving: it is ended after it has printed this. */
  servesOn?: boolean
  /** Whether it needs the private servers; it is skipped where they cannot be started. */
  needsServers?: boolean
}

/** Treatments by name of the snippet; all other snippets run unchanged. */
export const treatments: Record<string, Treatment> = {
  'README.md: Embed it': { prints: /^SUCCEEDED \{[^]*vocals:[^]*accompaniments:/m },
  'README.md: Embed it 2': {
    replace: () => [['?? 8080', '?? 0']],
    servesOn: true,
    prints: /^http:\/\/127\.0\.0\.1:\d+\/v1 with API key \S+$/m,
  },
  'docs/recipes.md: With curl': {
    replace: ({ base }) => [['http://localhost:8080/v1', base]],
    after:
      'test "$(head -c 4 vocals.wav)" = RIFF && echo \'the stem is there\'\ntest "$(curl -s -o gone.json -w ' +
      '\'%{http_code}\' -H "Authorization: $KEY" $BASE/job/$ID)" = 404',
    prints: /the stem is there/,
  },
  'README.md: Try it': { prints: /stemwork listening/ },
  'README.md: Try it 2': {
    before: 'mkdir -p songs && cp song.mp3 songs/',
    after: 'ls stems',
    prints: /1 separated[\s\S]*accompaniments\.wav\nvocals\.wav/,
  },
  'docs/getting-started.md: One song, no service': { after: 'ls stems', prints: /accompaniments\.wav\nvocals\.wav/ },
  'docs/other-programs.md: Commands of other programs': {
    replace: () => [
      ['as demucs', 'as demucs -n embedded'],
      ['-m UVR-MDX-NET-Inst_HQ_3.onnx', '-m embedded'],
    ],
    after: 'ls separated/*/song; ls',
    prints: /no_vocals\.wav\nvocals\.wav\n[\s\S]*song_\(Vocals\)/,
  },
  'docs/live.md: On the command line': {
    replace: () => [
      ['ffmpeg -i song.mp3 -f wav - |', 'npx stemwork transcode song.mp3 song.wav >&2 && cat song.wav |'],
      ['ffplay -nodisp -autoexit -i -', 'wc -c'],
    ],
    prints: /\d{6}/,
  },
  'docs/getting-started.md: The same from a program': {
    replace: ({ base }) => [['http://127.0.0.1:8080/v1', base]],
    after: "const { readdir } = await import('node:fs/promises')\nconsole.log((await readdir('.')).join(' '))",
    prints: /accompaniments\.wav.* vocals\.wav/,
  },
  'docs/usage.md: A Stripe meter': {
    before: [
      "import { defineWorkflow } from 'stemwork'",
      "import { createTestEngine, waitForJob } from 'stemwork/testing'",
      "import { z } from 'zod'",
      'const own = defineWorkflow({',
      "  id: 'own', name: 'Own', description: '', params: z.object({}), inputs: [], outputs: {},",
      "  stages: [{ name: 'run', run: async () => {} }],",
      '})',
      "const app = 'me'",
      "const customer = 'cus_1'",
      'const from = 0',
      'const engine = createTestEngine({ workflows: [own] })',
      'await engine.start()',
      "const { job } = await engine.submit({ app, workflow: 'own' })",
      'await waitForJob(engine, job.id)',
      'const to = Date.now()',
      'const create = async (/** @type {unknown} */ event) => console.log(event)',
      'const stripe = { billing: { meterEvents: { create } } }',
    ].join('\n'),
    after: 'await engine.close()',
    prints: /event_name: 'audio_seconds',\n +identifier: '[^']+\/0',\n +timestamp: \d{10},\n[^]*cus_1/,
  },
  'docs/recipes.md: Verify a webhook': {
    before: "process.env.WEBHOOK_SECRET = 'whsec_' + Buffer.alloc(24, 7).toString('base64')",
    replace: () => [['listen(9999', 'listen(0']],
    after: [
      "await new Promise((resolve) => server.once('listening', () => resolve(undefined)))",
      'const address = server.address()',
      "const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`",
      'const body = JSON.stringify({ type: "job.succeeded", data: { id: "one" } })',
      'const send = async (/** @type {string} */ id, /** @type {number} */ timestamp) => {',
      '  const signature = createHmac("sha256", key).update(`right.${timestamp}.${body}`).digest("base64")',
      '  const headers = { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": `v1,AAAA ' +
        'v1,${signature}` }',
      '  return (await fetch(url, { method: "POST", headers, body })).status',
      '}',
      'const now = Math.floor(Date.now() / 1000)',
      'console.log(await send("right", now), await send("wrong", now), await send("right", now - 600))',
      "const { connect } = await import('node:net')",
      'const broken = connect(Number(new URL(url).port), "127.0.0.1")',
      'broken.write("POST / HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 9\\r\\n\\r\\nhalf")',
      'await new Promise((resolve) => server.once("request", (request) => request.once("data", resolve)))',
      'broken.destroy()',
      'const large = await fetch(url, { method: "POST", body: "x".repeat(100_000) })',
      'console.log(await send("right", now), large.status)',
      'process.exit()',
    ].join('\n'),
    prints: /^job\.succeeded one\n204 401 401\njob\.succeeded one\n204 413$/m,
  },
  'docs/recipes.md: Karaoke versions of a folder': {
    before: [
      "import { cp } from 'node:fs/promises'",
      "for (const name of ['one.mp3', 'two.mp3']) await cp('song.mp3', `songs/${name}`)",
    ].join('\n'),
    replace: ({ base }) => [['http://127.0.0.1:8080/v1', base]],
    after: "console.log((await readdir('karaoke')).join(' '))",
    prints: /^one\.mp3 two\.mp3$/m,
  },
  'docs/recipes.md: Play stems while a job is running': {
    replace: ({ base }) => [['http://127.0.0.1:8080/v1', base]],
    prints: /^\d{5,} bytes of WAV$/m,
  },
  'docs/agents.md: Over HTTP': { replace: () => [['listen(8080)', 'listen(0)']], after: 'process.exit()' },
  // The tests' service cannot reach such an address, so the job ends with the reason.
  'docs/recipes.md: Follow a job in a browser': {
    replace: ({ base }) => [['http://127.0.0.1:8080/v1', base]],
    prints: /^FAILED .+/m,
  },
  'docs/embedding.md: A client': {
    replace: ({ base }) => [
      [
        "import type { engine } from './server.js'",
        "import { createEngine } from 'stemwork'\nconst engine = createEngine()",
      ],
      ['https://stems.example.org/v1', base],
    ],
    after: [
      '// @ts-expect-error: as the page says',
      'void job.result?.drums',
      'console.log(job.status)',
      'await engine.close()',
    ].join('\n'),
    // Such an address is unreachable, so the job ends with the reason.
    prints: /^FAILED$/m,
  },
  'docs/embedding.md: Your users instead of API keys': {
    replace: () => [['listen(8080', 'listen(0']],
    after: [
      "await new Promise((resolve) => server.once('listening', resolve))",
      'const address = server.address()',
      "const port = typeof address === 'object' ? address?.port : 0",
      'const answer = await fetch(`http://127.0.0.1:${port}/v1/application`, { headers: { cookie: ' +
        "'session=cookie-of-ann' } })",
      'console.log(await answer.text(), (await fetch(`http://127.0.0.1:${port}/v1/application`)).status)',
      'process.exit()',
    ].join('\n'),
    prints: /"Ann".* 401$/m,
  },
  'docs/embedding.md: Jobs without HTTP': {
    after: "const { readdir } = await import('node:fs/promises')\nconsole.log((await readdir('.')).join(' '))",
    prints: /accompaniments\.wav.* vocals\.wav/,
  },
  'docs/embedding.md: One transaction with your own data': { needsServers: true, prints: /^undefined$/m },
  'docs/embedding.md: Testing your workflows': { prints: /pass 1[\s\S]*fail 0/ },
  'docs/stages.md: Define a workflow': {
    after: "console.log(engine.workflows.get('service/concatenate')?.inputs)",
    prints: /firstUrl/,
  },
  'docs/stages.md: Heavy work': {
    after: [
      "if (process.argv[1] === (await import('node:url')).fileURLToPath(import.meta.url)) {",
      "  const { createEngine } = await import('stemwork')",
      "  const { createReadStream } = await import('node:fs')",
      "  const engine = createEngine({ workflows: [loudest({ id: 'service/loudest' })] })",
      "  await engine.blobs.put('uploads/me/song', createReadStream('song.mp3'))",
      "  const { job } = await engine.submit({ app: 'me', workflow: 'service/loudest', params: { inputUrl: " +
        "'https://example.org' }, uploads: { inputUrl: 'uploads/me/song' } })",
      '  console.log((await engine.run(job.id))?.status)',
      '  await engine.close()',
      '}',
    ].join('\n'),
    prints: /^SUCCEEDED$/m,
  },
  'docs/adapters.md: One machine, durable': { after: 'await engine.close()\nclose()\nprocess.exit()' },
  'docs/adapters.md: A Keyv backend': {
    needsServers: true,
    after: 'console.log(await engine.applications.listApplications())\nprocess.exit()',
    prints: /^\[\]$/m,
  },
  'docs/opentelemetry.md: In a program': {
    after:
      "await engine.submit({ app: 'me', workflow: 'service/stems-vocals-accompaniment', params: { inputUrl: " +
      "'https://example.org/song.mp3' } })\nawait engine.close()",
    prints: /submit service\/stems-vocals-accompaniment/,
  },
  'docs/deployment.md: Deployment 2': {
    needsServers: true,
    replace: ({ databaseUrl, s3 }) => [
      ['AWS_ACCESS_KEY_ID=...', `AWS_ACCESS_KEY_ID=${s3.accessKeyId}`],
      ['AWS_SECRET_ACCESS_KEY=...', `AWS_SECRET_ACCESS_KEY=${s3.secretAccessKey}`],
      ['postgres://user:password@db/stemwork', databaseUrl],
      ['https://s3.example.org', encodeURIComponent(s3.url)],
    ],
    prints: /stemwork listening[\s\S]*stemwork worker ready/,
  },
}

/** Lines of scripts that tests skip. */
export const leftLines: [pattern: RegExp, reason: string][] = [
  [/^npm (run demo|test)\b/, 'sets the checkout up and runs for minutes'],
  [/^npm (init|install|pkg)\b/, 'installs from a registry'],
  [/^npm create\b/, 'has tests of its own in test/platforms'],
  [/^(npx )?stemwork models pull\b/, 'downloads a model'],
  [/^npx stemwork models verify\b/, 'needs a downloaded model'],
  [/--watch\b/, 'goes on until it is stopped'],
  [/--preset|--beats|--model (htdemucs|kim-vocal-2)\b/, 'needs a downloaded model'],
]
