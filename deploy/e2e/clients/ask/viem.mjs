import { createPublicClient, http } from 'viem' // 2
const client = createPublicClient({ transport: http(process.env.URL) })
console.log(await client.request({ method: 'eth_getUncleByBlockNumberAndIndex', params: ['0x2a6a4', '0x0'] }))
