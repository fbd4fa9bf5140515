type JsonObject = Record<string, unknown>

const jobId = '7d3cbf9e-2f0a-4d5b-9a53-6a2f4f1f6f11'
const time = '2026-01-31T12:00:00.000Z'
const batchName = 'First takes'
const workflow = {
  id: 'service/stems-vocals-accompaniment',
  name: 'Stems: vocals and accompaniment',
  description: 'Separates a mixed audio track.',
}
const params = { inputUrl: 'https://example.org/my-song.mp3', format: '16' }
const key = { id: '0123456789abcdef', label: 'Studio laptop', createdAt: time, expiresAt: null, isCurrent: false }
const resultLink = (stem: string) => `{base}/storage/results/${jobId}/1/${stem}.wav?signature=...`
const uploadLink = '{base}/storage/uploads/...?signature=...'

/** Examples by name of a schema. */
const ofSchemas: Record<string, unknown> = {
  Application: { id: 'a1b2c3', name: 'Studio' },
  Archive: { url: '{base}/archive/zip?signature=...', fileName: 'First takes - stems.zip', bytes: 74_960_512, jobs: 1 },
  Batch: {
    name: batchName,
    total: 2,
    counts: { QUEUED: 0, STARTED: 1, SUCCEEDED: 1, FAILED: 0 },
    progress: 0.75,
    createdAt: time,
    endedAt: null,
  },
  BatchCreated: { name: batchName, ids: [jobId] },
  BulkReport: { done: 12, refused: [], next: null },
  Index: { name: 'stemwork', links: { docs: '{base}/docs', job: '{base}/job' } },
  IssuedKey: { ...key, key: 'stw_0123456789abcdef_...' },
  // A filter, not a request that affects every job.
  JobFilter: { status: ['FAILED'], batchName },
  Key: key,
  BatchRequest: {
    name: batchName,
    webhook: { url: 'https://example.org/hooks/batches' },
    jobs: [{ name: 'My song.mp3', workflow: workflow.id, params }],
  },
  Peaks: {
    version: 2,
    channels: 1,
    sample_rate: 44_100,
    samples_per_pixel: 512,
    bits: 8,
    length: 2,
    data: [-3, 4, -21, 19],
  },
  UploadTicket: { uploadUrl: uploadLink, downloadUrl: uploadLink, resumableUrl: '{base}/upload/resumable' },
  Workflow: {
    ...workflow,
    params: { type: 'object', properties: { inputUrl: { type: 'string', format: 'uri' } }, required: ['inputUrl'] },
    limits: { maxFileBytes: 1_073_741_824, maxAudioSeconds: 3600 },
  },
  WorkflowSummary: workflow,
}

/** Examples by name of a field, where its type suggests no plausible value; `undefined` leaves the field out. */
const ofFields: Record<string, unknown> = {
  name: 'My song.mp3',
  workflow: workflow.id,
  params,
  workflowParams: params,
  status: 'SUCCEEDED',
  progress: 1,
  stage: null,
  error: null,
  batchName,
  metadata: { album: 'First takes' },
  copyResultsTo: undefined,
  webhook: { url: 'https://example.org/hooks/stems', events: ['job.succeeded', 'job.failed'] },
  result: { vocals: resultLink('vocals'), accompaniments: resultLink('accompaniments') },
  files: { vocals: { fileName: 'My song - vocals.wav', contentType: 'audio/wav', bytes: 37_480_044 } },
  details: { seconds: 212.4, sampleRate: 44_100 },
  app: 'a1b2c3',
  label: 'Studio laptop',
  bytes: 37_480_044,
  problems: [],
  warnings: [],
  secret: 'whsec_ZXhhbXBsZS1leGFtcGxlLWV4YW1wbGUt',
  attempt: 1,
  attempts: 3,
  retryAt: null,
  notBefore: null,
  deadline: null,
  queuePosition: null,
  estimate: null,
  steps: undefined,
  waiting: null,
  priority: 0,
  inputUrl: params.inputUrl,
  format: 'flac',
  normalizeTo: -14,
  sampleRate: 48_000,
  channels: 2,
  lengthSeconds: 30,
  failures: 6,
  lastStatus: 503,
}

/** A plausible value of a schema. `{base}` stands for the address of the service. */
export function exampleOf(schema: unknown, schemas: Record<string, JsonObject>): unknown {
  const { $ref, examples, anyOf, properties, items, ...rest } = (schema ?? {}) as JsonObject
  if (typeof $ref === 'string') {
    const name = $ref.split('/').at(-1) ?? ''
    return ofSchemas[name] ?? exampleOf(schemas[name], schemas)
  }
  if (Array.isArray(examples)) return examples[0]
  if ('default' in rest) return rest.default
  if (Array.isArray(rest.enum)) return rest.enum[0]
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0], schemas)
  if (properties) return objectOf(properties as JsonObject, schemas)
  return items === undefined ? plainExample(rest) : [exampleOf(items, schemas)]
}

function objectOf(properties: JsonObject, schemas: Record<string, JsonObject>): JsonObject {
  const fields = Object.entries(properties).map(([name, field]): [string, unknown] => {
    const isKnown = Object.hasOwn(ofFields, name) && !Object.hasOwn(field as JsonObject, '$ref')
    return [name, isKnown ? ofFields[name] : exampleOf(field, schemas)]
  })
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined))
}

function plainExample({ type, format, minimum = 0 }: JsonObject): unknown {
  // The first of several types: the others are `null`.
  switch (Array.isArray(type) ? type[0] : type) {
    case 'string':
      return { uuid: jobId, 'date-time': time, uri: params.inputUrl }[String(format)] ?? 'text'
    case 'integer':
    case 'number':
      return minimum
    case 'boolean':
      return true
    default:
      return {}
  }
}
