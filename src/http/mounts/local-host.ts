import { isIP } from 'node:net'
import { Problem } from '../routing/problem.js'

/** Whether a server that listens on this address can be reached from its own machine only. */
export function isLoopback(address: string): boolean {
  return /^(localhost|127(\.\d+){3}|::1)$/.test(address)
}

/**
 * The refusal of another name for a service without keys on this machine: any web page can make a name of its own lead
 * here (DNS rebinding), and a browser would then let it send requests and read the answers.
 */
export function foreignName(host = 'localhost', { publicUrl }: { publicUrl?: string }): Problem | undefined {
  const { hostname } = new URL(URL.canParse(`http://${host}`) ? `http://${host}` : 'http://invalid')
  if (isIP(hostname.replace(/^\[|\]$/g, '')) || /^(.+\.)?localhost$/.test(hostname)) return undefined
  if (publicUrl !== undefined && hostname === new URL(publicUrl).hostname) return undefined
  return new Problem(
    'BAD_INPUT',
    `A service without keys does not answer as ${JSON.stringify(hostname)}, because any web page could have the name ` +
      'lead here. Use localhost or an IP address, or set publicUrl of createHandler to the name.',
  )
}
