interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(address: string): string }): typeof rules
}

let policy: ReturnType<TrustedTypes['createPolicy']> | undefined

/** For pages whose policy requires script addresses to be vouched for (`require-trusted-types-for`). */
export function trustedScript(address: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  policy ??= trustedTypes?.createPolicy('stemwork', { createScriptURL: (vouched) => vouched })
  return policy?.createScriptURL(address) ?? address
}
