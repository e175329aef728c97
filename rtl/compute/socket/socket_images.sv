// SPDX-License-Identifier: Apache-2.0

// Several kernels of which one is there, as if partial reconfiguration put it there: the simulated stand-in for a reconfigurable region and
// its controller. A board has a module with these ports in its place: `load` goes to the controller, which reads the bitstream, `record_word`
// comes from the table that the upload path fills once it has checked an image's signature and has computed its digest.
//
// Images behind those of the build are uploaded ones: their bitstream is read from the store, by `fetch`, and its first 16 bytes are the name
// of a kernel of the build, which `kernel` is the number of then. A bitstream that names none cannot be loaded.
//
// After reset image 0 is there. A request takes LOAD_CYCLES, the model of the bitstream's time; then the image is there, or there is an
// error if no image has the number, and nothing has changed. The requester keeps the kernel in reset from the request until the answer. The
// other kernels are in reset, and what they give is ignored. `record_word` is registered: one cycle. With one image: wires only.
module socket_images
  import compute_pkg::*;
  import roce_pkg::*;
  import images_pkg::*;
#(
    parameter int unsigned   IMAGES      = 2,
    parameter int unsigned   SLOTS       = 0,      // places for uploaded ones
    parameter kernel_texts_t KERNELS     = '0,
    parameter int unsigned   LOAD_CYCLES = 2500,
    parameter int unsigned   DATA_W      = 512,
    parameter int unsigned   ID_W        = 4
) (
    input  logic             clk,
    input  logic             rst,
    stream_if.sink           load,             // reconfigure_t
    stream_if.source         loaded,           // logic: it failed
    input  image_t           record_image,
    input  record_word_t     record_at,
    output logic [31:0]      record_word,
    output image_t           kernel,
    output image_slot_t            store_slot,       // of an uploaded image
    input  logic [31:0]      store_word,       // of its record, a cycle later
    stream_if.source         fetch,            // store_word_t
    stream_if.sink           fetched,          // store_answer_t

    input  logic             kernel_rst,       // the kernel's ports
    output kernel_identity_t identity,
    axil_if.slave            ctrl,
    stream_if.sink           job,
    stream_if.source         done,
    axi_if.master            mem,
    axis_if.sink             rx,
    axis_if.source           tx,
    stream_if.source         wqe,
    stream_if.sink           cqe,
    stream_if.source         connect,
    stream_if.sink           conn,
    axil_if.master           bus,
    axis_if.source           msg_tx,
    axis_if.sink             msg_rx
);
  if (IMAGES == 1) begin : g_one
    socket_kernel #(.KERNEL(KERNELS[0]), .DATA_W(DATA_W), .ID_W(ID_W)) held (
        .clk, .rst(kernel_rst), .identity, .ctrl, .job, .done, .mem, .rx, .tx, .wqe, .cqe, .connect, .conn,
        .bus, .msg_tx, .msg_rx
    );
    assign load.ready   = 1'b0;
    assign loaded.valid = 1'b0;
    assign loaded.data  = 1'b0;
    assign record_word  = '0;
    assign kernel        = '0;
    assign store_slot    = '0;
    assign fetch.valid   = 1'b0;
    assign fetch.data    = '0;
    assign fetched.ready = 1'b1;
    wire unused = &{1'b0, rst, load.valid, load.data, loaded.ready, record_image, record_at, store_word, fetch.ready, fetched.valid, fetched.data};
  end else begin : g_several
    // What a kernel gives.
    typedef struct packed {
      kernel_identity_t    identity;
      logic                ctrl_awready, ctrl_wready, ctrl_bvalid, ctrl_arready, ctrl_rvalid;
      logic [1:0]          ctrl_bresp, ctrl_rresp;
      logic [31:0]         ctrl_rdata;
      logic                job_ready, done_valid;
      done_t               done;
      logic [63:0]         awaddr, araddr;
      logic [ID_W-1:0]     awid, arid;
      logic [7:0]          awlen, arlen;
      logic [DATA_W-1:0]   wdata;
      logic [DATA_W/8-1:0] wstrb;
      logic                awvalid, wlast, wvalid, bready, arvalid, rready;
      logic                rx_ready, msg_rx_ready;
      logic [DATA_W-1:0]   tx_data, msg_tx_data;
      logic [DATA_W/8-1:0] tx_keep, msg_tx_keep;
      logic                tx_last, tx_user, tx_valid, msg_tx_last, msg_tx_user, msg_tx_valid;
      logic                wqe_valid, cqe_ready;
      rdma_wqe_t           wqe;
      logic                connect_valid, conn_ready;
      kernel_connect_t     connect;
      logic [19:0]         bus_awaddr, bus_araddr;
      logic [31:0]         bus_wdata;
      logic [3:0]          bus_wstrb;
      logic                bus_awvalid, bus_wvalid, bus_bready, bus_arvalid, bus_rready;
    } given_t;
    given_t [IMAGES-1:0] all;
    given_t              given;
    image_record_t       records[IMAGES];

    // ---- the controller ----
    localparam int unsigned LOAD_W = $clog2(LOAD_CYCLES + 1);
    typedef logic [$clog2(IMAGES)-1:0] index_t;
    typedef enum logic [1:0] {
      READY,
      FETCH,      // the bitstream of an uploaded image
      LOADING,
      LOADED
    } state_e;
    state_e            state_q;
    image_t            active_q, next_q;
    logic              failed_q;
    logic [LOAD_W-1:0] left_q;
    logic              asked_q;
    logic [29:0]       word_q, words_q;      // of the bitstream
    store_word_t       place_q;
    logic [IMAGES-1:0] named_q, name;
    reconfigure_t      request;
    store_answer_t     got;
    assign request = load.data;
    assign got     = fetched.data;

    // Whose name has this word.
    always_comb begin
      name = named_q;
      for (int unsigned i = 0; i < IMAGES; i++) begin
        if (word_q < 30'd4 && got.data != records[i].identity.name[{word_q[1:0], 2'b00}+:4]) name[i] = 1'b0;
      end
    end
    wire last_word = word_q == words_q - 1'b1;

    assign load.ready    = state_q == READY;
    assign loaded.valid  = state_q == LOADED;
    assign loaded.data   = failed_q;
    assign fetch.valid   = state_q == FETCH && !asked_q;
    assign fetch.data    = place_q;
    assign fetched.ready = 1'b1;
    assign kernel        = active_q;
    always_ff @(posedge clk) begin
      unique case (state_q)
        READY: begin
          next_q   <= request.image;
          left_q   <= LOAD_W'(LOAD_CYCLES);
          asked_q  <= 1'b0;
          word_q   <= '0;
          words_q  <= request.length[31:2];
          place_q  <= request.addr[2+:$bits(store_word_t)];
          named_q  <= '1;
          failed_q <= request.image >= image_t'(IMAGES);
          if (load.valid) state_q <= SLOTS != 0 && request.image >= image_t'(IMAGES) && |request.length[31:2] ? FETCH : LOADING;
        end
        FETCH: begin
          if (fetch.valid && fetch.ready) asked_q <= 1'b1;
          if (fetched.valid) begin
            asked_q <= 1'b0;
            word_q  <= word_q + 1'b1;
            place_q <= place_q + 1'b1;
            named_q <= name;
            if (last_word || got.error) begin
              state_q  <= LOADING;
              failed_q <= got.error || name == '0 || words_q < 30'd4;
              for (int unsigned i = 0; i < IMAGES; i++) if (name[i]) next_q <= image_t'(i);
            end
          end
        end
        LOADING: begin
          left_q <= left_q - 1'b1;
          if (left_q == '0) begin
            state_q <= LOADED;
            if (!failed_q) active_q <= next_q;
          end
        end
        default: if (loaded.ready) state_q <= READY;
      endcase
      if (rst) begin
        state_q  <= READY;
        active_q <= '0;
      end
    end

    logic        uploaded_q;
    logic [31:0] own_word_q;
    always_ff @(posedge clk) begin
      uploaded_q <= SLOTS != 0 && record_image >= image_t'(IMAGES);
      own_word_q <= record_image < image_t'(IMAGES) ? record_value(records[index_t'(record_image)], record_at) : '0;
    end
    assign record_word = uploaded_q ? store_word : own_word_q;
    assign store_slot  = image_slot_t'(record_image - image_t'(IMAGES));

    // ---- the kernels ----
    for (genvar i = 0; i < IMAGES; i++) begin : g_image
      socket_record #(.KERNEL(KERNELS[i])) record (.record(records[i]));

      axil_if #(.ADDR_W(20)) own_ctrl ();
      stream_if #(.T(job_t)) own_job ();
      stream_if #(.T(done_t)) own_done ();
      axi_if #(.ADDR_W(64), .DATA_W(DATA_W), .ID_W(ID_W)) own_mem ();
      axis_if #(.DATA_W(DATA_W)) own_rx (), own_tx (), own_msg_tx (), own_msg_rx ();
      stream_if #(.T(rdma_wqe_t)) own_wqe ();
      stream_if #(.T(rdma_cqe_t)) own_cqe ();
      stream_if #(.T(kernel_connect_t)) own_connect ();
      stream_if #(.T(kernel_conn_t)) own_conn ();
      axil_if #(.ADDR_W(20)) own_bus ();

      wire there = active_q == image_t'(i);
      socket_kernel #(.KERNEL(KERNELS[i]), .DATA_W(DATA_W), .ID_W(ID_W)) held (
          .clk, .rst(kernel_rst || !there), .identity(all[i].identity), .ctrl(own_ctrl), .job(own_job), .done(own_done), .mem(own_mem),
          .rx(own_rx), .tx(own_tx), .wqe(own_wqe), .cqe(own_cqe), .connect(own_connect), .conn(own_conn),
          .bus(own_bus), .msg_tx(own_msg_tx), .msg_rx(own_msg_rx)
      );

      assign own_ctrl.awaddr  = ctrl.awaddr;
      assign own_ctrl.awvalid = ctrl.awvalid && there;
      assign own_ctrl.wdata   = ctrl.wdata;
      assign own_ctrl.wstrb   = ctrl.wstrb;
      assign own_ctrl.wvalid  = ctrl.wvalid && there;
      assign own_ctrl.bready  = ctrl.bready;
      assign own_ctrl.araddr  = ctrl.araddr;
      assign own_ctrl.arvalid = ctrl.arvalid && there;
      assign own_ctrl.rready  = ctrl.rready;
      assign {all[i].ctrl_awready, all[i].ctrl_wready, all[i].ctrl_bvalid, all[i].ctrl_arready, all[i].ctrl_rvalid} =
             {own_ctrl.awready, own_ctrl.wready, own_ctrl.bvalid, own_ctrl.arready, own_ctrl.rvalid};
      assign {all[i].ctrl_bresp, all[i].ctrl_rresp, all[i].ctrl_rdata} = {own_ctrl.bresp, own_ctrl.rresp, own_ctrl.rdata};

      assign own_job.valid    = job.valid && there;
      assign own_job.data     = job.data;
      assign all[i].job_ready = own_job.ready;
      assign own_done.ready   = done.ready;
      assign {all[i].done_valid, all[i].done} = {own_done.valid, own_done.data};

      assign own_mem.awready = mem.awready;
      assign own_mem.wready  = mem.wready;
      assign own_mem.bid     = mem.bid;
      assign own_mem.bresp   = mem.bresp;
      assign own_mem.bvalid  = mem.bvalid && there;
      assign own_mem.arready = mem.arready;
      assign own_mem.rdata   = mem.rdata;
      assign own_mem.rid     = mem.rid;
      assign own_mem.rresp   = mem.rresp;
      assign own_mem.rlast   = mem.rlast;
      assign own_mem.rvalid  = mem.rvalid && there;
      assign {all[i].awaddr, all[i].awid, all[i].awlen, all[i].awvalid} = {own_mem.awaddr, own_mem.awid, own_mem.awlen, own_mem.awvalid};
      assign {all[i].wdata, all[i].wstrb, all[i].wlast, all[i].wvalid} = {own_mem.wdata, own_mem.wstrb, own_mem.wlast, own_mem.wvalid};
      assign {all[i].araddr, all[i].arid, all[i].arlen, all[i].arvalid} = {own_mem.araddr, own_mem.arid, own_mem.arlen, own_mem.arvalid};
      assign {all[i].bready, all[i].rready} = {own_mem.bready, own_mem.rready};

      assign own_rx.tdata         = rx.tdata;
      assign own_rx.tkeep         = rx.tkeep;
      assign own_rx.tlast         = rx.tlast;
      assign own_rx.tuser         = rx.tuser;
      assign own_rx.tvalid        = rx.tvalid && there;
      assign all[i].rx_ready      = own_rx.tready;
      assign own_msg_rx.tdata     = msg_rx.tdata;
      assign own_msg_rx.tkeep     = msg_rx.tkeep;
      assign own_msg_rx.tlast     = msg_rx.tlast;
      assign own_msg_rx.tuser     = msg_rx.tuser;
      assign own_msg_rx.tvalid    = msg_rx.tvalid && there;
      assign all[i].msg_rx_ready  = own_msg_rx.tready;
      assign own_tx.tready        = tx.tready;
      assign {all[i].tx_data, all[i].tx_keep, all[i].tx_last, all[i].tx_user, all[i].tx_valid} =
             {own_tx.tdata, own_tx.tkeep, own_tx.tlast, own_tx.tuser, own_tx.tvalid};
      assign own_msg_tx.tready    = msg_tx.tready;
      assign {all[i].msg_tx_data, all[i].msg_tx_keep, all[i].msg_tx_last, all[i].msg_tx_user, all[i].msg_tx_valid} =
             {own_msg_tx.tdata, own_msg_tx.tkeep, own_msg_tx.tlast, own_msg_tx.tuser, own_msg_tx.tvalid};

      assign own_wqe.ready        = wqe.ready;
      assign {all[i].wqe_valid, all[i].wqe} = {own_wqe.valid, own_wqe.data};
      assign own_cqe.valid        = cqe.valid && there;
      assign own_cqe.data         = cqe.data;
      assign all[i].cqe_ready     = own_cqe.ready;
      assign own_connect.ready    = connect.ready;
      assign {all[i].connect_valid, all[i].connect} = {own_connect.valid, own_connect.data};
      assign own_conn.valid       = conn.valid && there;
      assign own_conn.data        = conn.data;
      assign all[i].conn_ready    = own_conn.ready;

      assign own_bus.awready = bus.awready;
      assign own_bus.wready  = bus.wready;
      assign own_bus.bvalid  = bus.bvalid && there;
      assign own_bus.bresp   = bus.bresp;
      assign own_bus.arready = bus.arready;
      assign own_bus.rvalid  = bus.rvalid && there;
      assign own_bus.rdata   = bus.rdata;
      assign own_bus.rresp   = bus.rresp;
      assign {all[i].bus_awaddr, all[i].bus_awvalid, all[i].bus_bready} = {own_bus.awaddr, own_bus.awvalid, own_bus.bready};
      assign {all[i].bus_wdata, all[i].bus_wstrb, all[i].bus_wvalid} = {own_bus.wdata, own_bus.wstrb, own_bus.wvalid};
      assign {all[i].bus_araddr, all[i].bus_arvalid, all[i].bus_rready} = {own_bus.araddr, own_bus.arvalid, own_bus.rready};
    end

    assign given = all[index_t'(active_q)];

    assign identity      = given.identity;
    assign ctrl.awready  = given.ctrl_awready;
    assign ctrl.wready   = given.ctrl_wready;
    assign ctrl.bvalid   = given.ctrl_bvalid;
    assign ctrl.bresp    = given.ctrl_bresp;
    assign ctrl.arready  = given.ctrl_arready;
    assign ctrl.rvalid   = given.ctrl_rvalid;
    assign ctrl.rdata    = given.ctrl_rdata;
    assign ctrl.rresp    = given.ctrl_rresp;
    assign job.ready     = given.job_ready;
    assign done.valid    = given.done_valid;
    assign done.data     = given.done;
    assign mem.awaddr    = given.awaddr;
    assign mem.awid      = given.awid;
    assign mem.awlen     = given.awlen;
    assign mem.awvalid   = given.awvalid;
    assign mem.wdata     = given.wdata;
    assign mem.wstrb     = given.wstrb;
    assign mem.wlast     = given.wlast;
    assign mem.wvalid    = given.wvalid;
    assign mem.bready    = given.bready;
    assign mem.araddr    = given.araddr;
    assign mem.arid      = given.arid;
    assign mem.arlen     = given.arlen;
    assign mem.arvalid   = given.arvalid;
    assign mem.rready    = given.rready;
    assign rx.tready     = given.rx_ready;
    assign msg_rx.tready = given.msg_rx_ready;
    assign tx.tdata      = given.tx_data;
    assign tx.tkeep      = given.tx_keep;
    assign tx.tlast      = given.tx_last;
    assign tx.tuser      = given.tx_user;
    assign tx.tvalid     = given.tx_valid;
    assign msg_tx.tdata  = given.msg_tx_data;
    assign msg_tx.tkeep  = given.msg_tx_keep;
    assign msg_tx.tlast  = given.msg_tx_last;
    assign msg_tx.tuser  = given.msg_tx_user;
    assign msg_tx.tvalid = given.msg_tx_valid;
    assign wqe.valid     = given.wqe_valid;
    assign wqe.data      = given.wqe;
    assign cqe.ready     = given.cqe_ready;
    assign connect.valid = given.connect_valid;
    assign connect.data  = given.connect;
    assign conn.ready    = given.conn_ready;
    assign bus.awaddr    = given.bus_awaddr;
    assign bus.awvalid   = given.bus_awvalid;
    assign bus.wdata     = given.bus_wdata;
    assign bus.wstrb     = given.bus_wstrb;
    assign bus.wvalid    = given.bus_wvalid;
    assign bus.bready    = given.bus_bready;
    assign bus.araddr    = given.bus_araddr;
    assign bus.arvalid   = given.bus_arvalid;
    assign bus.rready    = given.bus_rready;

    wire unused = &{1'b0, load.data};
  end
endmodule
