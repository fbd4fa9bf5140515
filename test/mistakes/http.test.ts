import { afterAll, beforeAll, test } from 'vitest'
import { Stemwork } from '../cli/stemwork.js'
import { expectToTeach, type Mistake } from './table.js'

const key = 'a-key-of-your-own'
const workflow = 'service/stems-vocals-accompaniment'
const inputUrl = 'https://example.org/song.mp3'
const withKey = { authorization: key }

/** Typical wrong requests of newcomers. */
interface RequestMistake extends Mistake {
  path?: string
  headers?: Record<string, string>
  method?: string
  /** Sent as JSON unless it is a string. */
  body?: unknown
}

const mistakes: RequestMistake[] = [
  { what: 'no key', path: '/application', headers: {}, says: [/no API key.*Authorization header/] },
  {
    what: 'a wrong key',
    path: '/application',
    headers: { authorization: 'wrong' },
    says: [/not valid: it is mistyped/],
  },
  {
    what: 'the wrong header',
    path: '/application',
    headers: { 'x-api-key': key },
    says: [/header x-api-key.*Authoriz/],
  },
  {
    what: 'another scheme',
    path: '/application',
    headers: { authorization: 'Basic YTpi' },
    says: [/"Basic".*raw value/],
  },
  { what: 'truncated JSON', body: '{"name":', says: [/not valid JSON: .*end of JSON/] },
  { what: 'no body', body: '', says: [/has no body\. Send JSON/] },
  { what: 'a body that is too large', body: ' '.repeat(300_000), says: [/at most 262144 bytes\. Send less/] },
  { what: 'a form', headers: { ...withKey, 'content-type': 'text/x' }, body: 'a=b', says: [/must be JSON.*"text\/x"/] },
  { what: 'no params', body: { workflow }, says: [/params: is missing: expected an object/] },
  { what: 'a list of jobs', body: [{ workflow }], says: [/body: must be an object, not a list/] },
  { what: 'no workflow', body: { params: {} }, says: [/workflow: is missing/] },
  { what: 'an unknown workflow', body: { workflow: 'stems', params: {} }, says: [/"stems".*Known workflows: service/] },
  {
    what: 'a misspelt param',
    body: { workflow, params: { inputURL: inputUrl } },
    says: [/inputURL.*nearest.*inputUrl/],
  },
  { what: 'a path for a URL', body: { workflow, params: { inputUrl: 'a.mp3' } }, says: [/http:\/\/.*not "a\.mp3"/] },
  { what: 'an unknown format', body: { workflow, params: { inputUrl, format: 'ogg' } }, says: [/one of .*not "ogg"/] },
  {
    what: 'webhookUrl',
    body: { workflow, params: { inputUrl }, webhookUrl: 'x' },
    says: [/webhookUrl.*nearest.*webhook/],
  },
  { what: 'params as text', body: { workflow, params: 'x' }, says: [/params: must be an object, not "x"/] },
  { what: 'a plural', path: '/jobs', says: [/nothing at \/v1\/jobs.*begin with "\/v1\/"/] },
  { what: 'a prefix twice', path: '/v1/job', says: [/nothing at \/v1\/v1\/job/] },
  { what: 'another method', path: '/job', method: 'PUT', says: [/PUT is not allowed here\. Use GET/] },
  { what: 'a job that does not exist', path: '/job/123', says: [/no job with this id.*another application/] },
  { what: 'a page number as a cursor', path: '/job?after=2', says: [/after: must be the cursor of a Link header/] },
  {
    what: 'words for a number',
    path: '/job/1/peaks/vocals?length=all',
    says: [/length: must be a whole number from 1 to 8192, not "all"/],
  },
  { what: 'an unknown status', path: '/job?status=DONE', says: [/must be one of QUEUED.*not "DONE"/] },
]

let service: Stemwork
let base: string
beforeAll(async () => {
  service = new Stemwork(['serve', '--port', '0', '--api-keys', key])
  base = (await service.printed('stdout', /on (\S+)/))[1] ?? ''
})
afterAll(async () => {
  service.kill('SIGINT')
  await service.finished()
})

const requestOf = ({ headers = withKey, method, body }: RequestMistake): RequestInit => {
  if (body === undefined) return { method, headers }
  const json = typeof body === 'string' ? body : JSON.stringify(body)
  return { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: json }
}

/** The answer of a service with default settings, which accepts ten jobs a second. */
async function answerOf(mistake: RequestMistake): Promise<Response> {
  const answer = await fetch(base + (mistake.path ?? '/job'), requestOf(mistake))
  if (answer.status !== 429) return answer
  await new Promise((resolve) => setTimeout(resolve, 1000 * Number(answer.headers.get('retry-after') ?? 1)))
  return answerOf(mistake)
}

test.each(mistakes)('$what', async (mistake) => {
  const answer = await answerOf(mistake)
  const { message } = (await answer.json()) as { message: string }
  if (answer.ok) throw new Error(`No mistake: ${message}`)
  expectToTeach(mistake, message)
})

test('a job for a file that was never uploaded, and a link that was used', async () => {
  const ticket = await (await fetch(`${base}/upload`, { headers: withKey })).json()
  const { uploadUrl, downloadUrl } = ticket as Record<'uploadUrl' | 'downloadUrl', string>
  const early = await answerOf({ what: '', says: [], body: { workflow, params: { inputUrl: downloadUrl } } })
  const put = (url: string) => fetch(url, { method: 'PUT', body: 'x' })
  const changed = await put(uploadUrl.replace(/.(?=.{9}$)/, (sign) => (sign === 'A' ? 'B' : 'A')))
  await put(uploadUrl)
  const second = await put(uploadUrl)
  for (const [what, answer, says] of [
    ['no upload yet', early, /No file has been uploaded.*PUT the file to the uploadUrl/],
    ['a link that was changed', changed, /signature of this link is not valid.*exactly as the service gave it/],
    ['a link used twice', second, /already uploaded with this link.*new ticket from GET \/upload/],
  ] as const)
    expectToTeach({ what, says: [says] }, ((await answer.json()) as { message: string }).message)
})
