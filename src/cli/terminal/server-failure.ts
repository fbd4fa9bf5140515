/** Remedy for a server that cannot be reached, or that refuses its client; `undefined` for other failures. */
export function serverRemedy(error: unknown): string | undefined {
  for (const each of causesOf(error)) {
    const { code, name, message } = each as NodeJS.ErrnoException
    const known = remedies.find(([pattern]) => [code ?? '', name, message].some((text) => pattern.test(text)))
    if (known) return known[1]
  }
  return undefined
}

/** Like `serverRemedy`, unless the error's message says it already, as a store's does for refusals by Postgres. */
export function remedyBeyond({ cause }: Error): string | undefined {
  const isSaid = ({ code, message }: NodeJS.ErrnoException) =>
    /^(28P01|28000|3D000|42501|SASL: .*)$/.test(code ?? message)
  return cause instanceof Error && isSaid(cause) ? undefined : serverRemedy(cause)
}

/** An error, its cause, and so on; of an AggregateError, as for a host with several addresses, the first error. */
export function causesOf(error: unknown): Error[] {
  const found: Error[] = []
  let each: unknown = error
  while (each instanceof Error && found.length < 6) {
    found.push(each)
    each = each.cause ?? (each instanceof AggregateError ? each.errors[0] : undefined)
  }
  return found
}

/** The address in a URL, without user and password; `undefined` if the URL names no server. */
export function serverAddress(url: string | undefined): string | undefined {
  if (url === undefined || !/^(postgres(ql)?|rediss?|s3):\/\//.test(url) || !URL.canParse(url)) return undefined
  const { protocol, host, pathname, searchParams } = new URL(url)
  const endpoint = searchParams.get('endpoint')
  return `${protocol}//${host}${pathname}${endpoint === null ? '' : ` at ${endpoint}`}`
}

/** Remedies by the code, the name or the start of the message of an error from the system or a server. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED$/, 'Nothing listens there. Start the server, or correct the host and port.'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'The host name has no address. Correct it, or check the DNS of this machine.'],
  [
    /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/,
    'Check that the address is right, and that networks and firewalls let this machine reach it.',
  ],
  [
    /^(28P01|28000|WRONGPASS|NOAUTH|ERR AUTH|SASL: .*client password)/,
    'The server refuses the user or the password. Correct them in the URL.',
  ],
  [
    /^SQLITE_BUSY$/,
    'If a service runs with it, use its operator page instead (<its address>/v1/operator, with `serve ' +
      '--operator-key`) or its HTTP interface, or stop it first.',
  ],
  [/^3D000$/, 'Create the database, or correct its name in the URL.'],
  [
    /^(InvalidAccessKeyId|SignatureDoesNotMatch)$/,
    'The server refuses the access key. Correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
  ],
  [
    /^CredentialsProviderError$/,
    'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another source of credentials that the AWS SDK knows.',
  ],
  [
    /^(RequestTimeTooSkewed|RequestExpired)$/,
    'The clock of this machine and that of the server differ by minutes. Synchronize both with NTP.',
  ],
  [
    /^(PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/,
    'The bucket is in another region. Name it: --blobs s3://<bucket>?region=<name>, or AWS_REGION.',
  ],
  [/^NoSuchBucket$/, 'Create the bucket, or correct its name in the URL.'],
  [/^(42501|AccessDenied)$/, 'Give this user the right to read, write and delete.'],
]
